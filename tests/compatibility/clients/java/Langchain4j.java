// client: LangChain4j
// registry: Maven
// packages: dev.langchain4j:langchain4j-open-ai:1.19.0
// door: chat
import dev.langchain4j.agent.tool.ToolSpecification;
import dev.langchain4j.data.message.AiMessage;
import dev.langchain4j.data.message.ChatMessage;
import dev.langchain4j.data.message.ImageContent;
import dev.langchain4j.data.message.SystemMessage;
import dev.langchain4j.data.message.TextContent;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.model.chat.request.ChatRequest;
import dev.langchain4j.model.chat.request.json.JsonObjectSchema;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

final class Client {
    private static ChatMessage converted(Scenarios.Turn turn) {
        if (turn.role().equals("system")) return SystemMessage.from(turn.text());
        if (turn.role().equals("assistant")) return AiMessage.from(turn.text());
        if (turn.picture() == null) return UserMessage.from(turn.text());
        String data = Base64.getEncoder().encodeToString(turn.picture());
        return UserMessage.from(TextContent.from(turn.text()), ImageContent.from(data, "image/png"));
    }

    private static String ask(List<Scenarios.Turn> turns, Scenarios.Options options) throws Exception {
        var request = ChatRequest.builder().messages(turns.stream().map(Client::converted).toList());
        if (options.tools()) {
            request.toolSpecifications(ToolSpecification.builder()
                    .name("add")
                    .parameters(JsonObjectSchema.builder().addIntegerProperty("a").build())
                    .build());
        }
        if (!options.stream()) {
            var model = OpenAiChatModel.builder()
                    .baseUrl(Scenarios.BASE_URL)
                    .apiKey(options.key())
                    .modelName(Scenarios.MODEL)
                    .build();
            return model.chat(request.build()).aiMessage().text();
        }
        var model = OpenAiStreamingChatModel.builder()
                .baseUrl(Scenarios.BASE_URL)
                .apiKey(options.key())
                .modelName(Scenarios.MODEL)
                .build();
        StringBuilder text = new StringBuilder();
        CompletableFuture<String> done = new CompletableFuture<>();
        model.chat(request.build(), new StreamingChatResponseHandler() {
            @Override
            public void onPartialResponse(String piece) {
                text.append(piece);
            }

            @Override
            public void onCompleteResponse(ChatResponse response) {
                done.complete(text.toString());
            }

            @Override
            public void onError(Throwable error) {
                done.completeExceptionally(error);
            }
        });
        return done.get(60, TimeUnit.SECONDS);
    }

    public static void main(String[] argv) throws Exception {
        Scenarios.chat(Client::ask, Map.of());
    }
}
