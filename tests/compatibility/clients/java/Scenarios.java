// Scenarios for clients in Java, as in ../python/scenarios.py.
import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import javax.imageio.ImageIO;

final class Scenarios {
    static final String BASE_URL = given("URL") + "/v1";
    static final String KEY = given("KEY");
    static final String DOOR = given("DOOR");
    static final String MODEL = "larkspur";
    static final String WRONG_KEY = "no-such-key-0000000000000000000000000000";

    /** A turn of a conversation; the picture is a PNG, or null. */
    record Turn(String role, String text, byte[] picture) {}

    record Options(boolean stream, boolean tools, String key) {}

    interface Chat {
        String ask(List<Turn> turns, Options options) throws Exception;
    }

    static String given(String name) {
        String value = System.getenv("LARKSPUR_" + name);
        return value == null ? "" : value;
    }

    static String prompt(String scenario) {
        return "case: " + scenario + " [" + given("CASE") + "]";
    }

    static byte[] picture() throws Exception {
        BufferedImage image = new BufferedImage(64, 64, BufferedImage.TYPE_INT_RGB);
        for (int n = 0; n < 64 * 64; n++) image.setRGB(n % 64, n / 64, 0xff0000);
        ByteArrayOutputStream data = new ByteArrayOutputStream();
        ImageIO.write(image, "png", data);
        return data.toByteArray();
    }

    static String dataUrl(byte[] picture) {
        return "data:image/png;base64," + Base64.getEncoder().encodeToString(picture);
    }

    static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char sign : text.toCharArray()) {
            if (sign == '"' || sign == '\\') out.append('\\').append(sign);
            else if (sign < 0x20) out.append(String.format("\\u%04x", (int) sign));
            else out.append(sign);
        }
        return out.append('"').toString();
    }

    static void say(String scenario, String key, String json) {
        System.out.println("{\"scenario\": " + quoted(scenario) + ", \"" + key + "\": " + json + "}");
    }

    static void attempt(String scenario, Callable<String> work) {
        try {
            String text = work.call();
            say(scenario, "result", text == null ? "null" : quoted(text));
        } catch (Throwable error) {
            error.printStackTrace();
            say(scenario, "error", quoted(error.getClass().getSimpleName() + ": " + error.getMessage()));
        }
    }

    static void check(String scenario, Callable<Boolean> work) {
        try {
            say(scenario, "result", String.valueOf(work.call()));
        } catch (Throwable error) {
            say(scenario, "error", quoted(String.valueOf(error)));
        }
    }

    static Turn user(String scenario) {
        return new Turn("user", prompt(scenario), null);
    }

    /** Do all scenarios of a chat client. */
    static void chat(Chat chat, Map<String, String> without) throws Exception {
        Options plain = new Options(false, false, KEY);
        List<String> names =
                List.of("plain", "stream", "history", "tools", "picture", "system", "wrong key", "failing");
        for (String name : names) {
            if (without.containsKey(name)) {
                say(name, "absent", quoted(without.get(name)));
                continue;
            }
            attempt(name, () -> switch (name) {
                case "stream" -> chat.ask(List.of(user(name)), new Options(true, false, KEY));
                case "tools" -> chat.ask(List.of(user(name)), new Options(false, true, KEY));
                case "wrong key" -> chat.ask(List.of(user("plain")), new Options(false, false, WRONG_KEY));
                case "picture" -> chat.ask(List.of(new Turn("user", prompt(name), picture())), plain);
                case "system" ->
                        chat.ask(List.of(new Turn("system", "Speak like a pirate.", null), user(name)), plain);
                case "history" -> history(chat, plain);
                default -> chat.ask(List.of(user(name)), plain);
            });
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static String history(Chat chat, Options options) throws Exception {
        List<Turn> turns = new ArrayList<>();
        String answer = "";
        for (String scenario : List.of("write", "plain", "read")) {
            turns.add(user(scenario));
            answer = chat.ask(List.copyOf(turns), options);
            turns.add(new Turn("assistant", answer, null));
        }
        return answer;
    }
}
