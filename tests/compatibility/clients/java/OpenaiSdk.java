// client: openai-java
// registry: Maven
// packages: com.openai:openai-java:4.101.0
// door: chat responses
import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.JsonValue;
import com.openai.core.http.StreamResponse;
import com.openai.models.FunctionDefinition;
import com.openai.models.FunctionParameters;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionContentPart;
import com.openai.models.chat.completions.ChatCompletionContentPartImage;
import com.openai.models.chat.completions.ChatCompletionContentPartText;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.responses.EasyInputMessage;
import com.openai.models.responses.ResponseCreateParams;
import com.openai.models.responses.ResponseInputItem;
import com.openai.models.responses.ResponseStreamEvent;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

final class Client {
    private static String completed(OpenAIClient client, List<Scenarios.Turn> turns, Scenarios.Options options) {
        var request = ChatCompletionCreateParams.builder().model(Scenarios.MODEL);
        for (var turn : turns) {
            if (turn.role().equals("system")) request.addSystemMessage(turn.text());
            else if (turn.role().equals("assistant")) request.addAssistantMessage(turn.text());
            else if (turn.picture() == null) request.addUserMessage(turn.text());
            else request.addUserMessageOfArrayOfContentParts(parts(turn));
        }
        if (options.tools()) {
            var parameters = FunctionParameters.builder()
                    .putAdditionalProperty("type", JsonValue.from("object"))
                    .putAdditionalProperty("properties", JsonValue.from(Map.of()))
                    .build();
            request.addFunctionTool(FunctionDefinition.builder().name("add").parameters(parameters).build());
        }
        if (!options.stream()) {
            var reply = client.chat().completions().create(request.build());
            return reply.choices().get(0).message().content().orElse("");
        }
        StringBuilder text = new StringBuilder();
        try (StreamResponse<ChatCompletionChunk> chunks =
                client.chat().completions().createStreaming(request.build())) {
            chunks.stream()
                    .flatMap(chunk -> chunk.choices().stream())
                    .forEach(choice -> choice.delta().content().ifPresent(text::append));
        }
        return text.toString();
    }

    private static List<ChatCompletionContentPart> parts(Scenarios.Turn turn) {
        var url = ChatCompletionContentPartImage.ImageUrl.builder()
                .url(Scenarios.dataUrl(turn.picture()))
                .build();
        return List.of(
                ChatCompletionContentPart.ofText(
                        ChatCompletionContentPartText.builder().text(turn.text()).build()),
                ChatCompletionContentPart.ofImageUrl(
                        ChatCompletionContentPartImage.builder().imageUrl(url).build()));
    }

    private static String responded(OpenAIClient client, List<Scenarios.Turn> turns, Scenarios.Options options) {
        List<ResponseInputItem> items = new ArrayList<>();
        for (var turn : turns) {
            items.add(ResponseInputItem.ofEasyInputMessage(EasyInputMessage.builder()
                    .role(EasyInputMessage.Role.of(turn.role()))
                    .content(turn.text())
                    .build()));
        }
        var request = ResponseCreateParams.builder().model(Scenarios.MODEL).inputOfResponse(items).build();
        StringBuilder text = new StringBuilder();
        if (!options.stream()) {
            client.responses().create(request).output().stream()
                    .flatMap(item -> item.message().stream())
                    .flatMap(message -> message.content().stream())
                    .forEach(part -> part.outputText().ifPresent(found -> text.append(found.text())));
            return text.toString();
        }
        try (StreamResponse<ResponseStreamEvent> events = client.responses().createStreaming(request)) {
            events.stream()
                    .forEach(event -> event.outputTextDelta().ifPresent(delta -> text.append(delta.delta())));
        }
        return text.toString();
    }

    public static void main(String[] argv) throws Exception {
        boolean isChat = Scenarios.DOOR.equals("chat");
        Scenarios.chat(
                (turns, options) -> {
                    OpenAIClient client = OpenAIOkHttpClient.builder()
                            .baseUrl(Scenarios.BASE_URL)
                            .apiKey(options.key())
                            .build();
                    return isChat ? completed(client, turns, options) : responded(client, turns, options);
                },
                isChat ? Map.of() : Map.of("tools", "not tried", "picture", "not tried"));
    }
}
