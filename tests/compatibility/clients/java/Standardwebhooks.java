// client: standardwebhooks (Java)
// registry: Maven
// packages: com.standardwebhooks:standardwebhooks:1.2.0 com.google.code.gson:gson:2.13.2
// door: webhook
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.standardwebhooks.Webhook;
import com.standardwebhooks.exceptions.WebhookVerificationException;
import java.net.http.HttpHeaders;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

final class Client {
    private static boolean verified(JsonObject delivery, String body) throws Exception {
        Map<String, List<String>> headers = new HashMap<>();
        for (var each : delivery.getAsJsonObject("headers").entrySet())
            headers.put(each.getKey(), List.of(each.getValue().getAsString()));
        try {
            // As docs/hooks.md says: what is not in Base64 is given as bytes.
            String secret = delivery.get("secret").getAsString();
            Webhook library =
                    secret.startsWith("whsec_") ? new Webhook(secret) : new Webhook(secret.getBytes());
            library.verify(body, HttpHeaders.of(headers, (name, value) -> true));
            return true;
        } catch (WebhookVerificationException error) {
            return false;
        }
    }

    public static void main(String[] argv) throws Exception {
        String data = Files.readString(Path.of(Scenarios.given("DELIVERIES")));
        JsonObject found = JsonParser.parseString(data).getAsJsonObject();
        JsonObject prefixed = found.getAsJsonObject("prefixed");
        JsonObject plain = found.getAsJsonObject("plain");
        String body = prefixed.get("body").getAsString();
        Scenarios.check("prefixed secret", () -> verified(prefixed, body));
        Scenarios.check("plain secret", () -> verified(plain, plain.get("body").getAsString()));
        Scenarios.check("changed body", () -> verified(prefixed, body + " "));
    }
}
