// Scenarios for libraries that verify signatures, over deliveries of a gateway.
import { readFileSync } from "node:fs";
import { attempt } from "./scenarios.mjs";

// `verify(secret, body, headers)` throws an error of the class `refusal` for a wrong signature.
export async function webhook(verify, refusal) {
  const { prefixed, plain } = JSON.parse(readFileSync(process.env.LARKSPUR_DELIVERIES, "utf-8"));
  const verified = async (delivery, body) => {
    try {
      await verify(delivery.secret, body, delivery.headers);
      return true;
    } catch (error) {
      if (error instanceof refusal) return false;
      throw error;
    }
  };
  await attempt("prefixed secret", () => verified(prefixed, prefixed.body));
  await attempt("plain secret", () => verified(plain, plain.body));
  await attempt("changed body", () => verified(prefixed, `${prefixed.body} `));
}
