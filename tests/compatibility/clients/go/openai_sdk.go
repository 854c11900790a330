// client: openai-go
// registry: Go
// packages: github.com/openai/openai-go/v3@v3.99.0
// door: chat responses
package main

import (
	"context"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

var schema = map[string]any{"type": "object", "properties": map[string]any{}}

func converted(given turn) openai.ChatCompletionMessageParamUnion {
	switch {
	case given.role == "system":
		return openai.SystemMessage(given.text)
	case given.role == "assistant":
		return openai.AssistantMessage(given.text)
	case given.picture == "":
		return openai.UserMessage(given.text)
	}
	return openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
		openai.TextContentPart(given.text),
		openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{
			URL: given.picture,
		}),
	})
}

func completed(limit context.Context, client openai.Client, turns []turn, given options) (string, error) {
	request := openai.ChatCompletionNewParams{Model: model}
	for _, each := range turns {
		request.Messages = append(request.Messages, converted(each))
	}
	if given.tools {
		function := openai.FunctionDefinitionParam{Name: "add", Parameters: schema}
		request.Tools = append(request.Tools, openai.ChatCompletionFunctionTool(function))
	}
	if !given.stream {
		reply, err := client.Chat.Completions.New(limit, request)
		if err != nil {
			return "", err
		}
		return reply.Choices[0].Message.Content, nil
	}
	stream := client.Chat.Completions.NewStreaming(limit, request)
	var text strings.Builder
	for stream.Next() {
		if chunk := stream.Current(); len(chunk.Choices) > 0 {
			text.WriteString(chunk.Choices[0].Delta.Content)
		}
	}
	return text.String(), stream.Err()
}

func item(given turn) responses.ResponseInputItemUnionParam {
	role := responses.EasyInputMessageRole(given.role)
	if given.picture == "" {
		return responses.ResponseInputItemParamOfMessage(given.text, role)
	}
	image := responses.ResponseInputContentParamOfInputImage("auto")
	image.OfInputImage.ImageURL = param.NewOpt(given.picture)
	return responses.ResponseInputItemParamOfMessage(responses.ResponseInputMessageContentListParam{
		responses.ResponseInputContentParamOfInputText(given.text), image,
	}, role)
}

func responded(limit context.Context, client openai.Client, turns []turn, given options) (string, error) {
	request := responses.ResponseNewParams{Model: model}
	for _, each := range turns {
		request.Input.OfInputItemList = append(request.Input.OfInputItemList, item(each))
	}
	if given.tools {
		request.Tools = append(request.Tools, responses.ToolParamOfFunction("add", schema, false))
	}
	if !given.stream {
		reply, err := client.Responses.New(limit, request)
		if err != nil {
			return "", err
		}
		return reply.OutputText(), nil
	}
	stream := client.Responses.NewStreaming(limit, request)
	var text strings.Builder
	for stream.Next() {
		if event := stream.Current(); event.Type == "response.output_text.delta" {
			text.WriteString(event.Delta)
		}
	}
	return text.String(), stream.Err()
}

func main() {
	chat(func(limit context.Context, turns []turn, given options) (string, error) {
		client := openai.NewClient(option.WithBaseURL(baseURL), option.WithAPIKey(given.key))
		if door == "chat" {
			return completed(limit, client, turns, given)
		}
		return responded(limit, client, turns, given)
	}, nil)
}
