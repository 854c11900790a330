// client: go-openai
// registry: Go
// packages: github.com/sashabaranov/go-openai@v1.43.0
// door: chat
package main

import (
	"context"
	"errors"
	"io"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

func converted(given turn) openai.ChatCompletionMessage {
	if given.picture == "" {
		return openai.ChatCompletionMessage{Role: given.role, Content: given.text}
	}
	return openai.ChatCompletionMessage{Role: given.role, MultiContent: []openai.ChatMessagePart{
		{Type: openai.ChatMessagePartTypeText, Text: given.text},
		{
			Type:     openai.ChatMessagePartTypeImageURL,
			ImageURL: &openai.ChatMessageImageURL{URL: given.picture},
		},
	}}
}

func ask(limit context.Context, turns []turn, given options) (string, error) {
	config := openai.DefaultConfig(given.key)
	config.BaseURL = baseURL
	client := openai.NewClientWithConfig(config)
	request := openai.ChatCompletionRequest{Model: model}
	for _, each := range turns {
		request.Messages = append(request.Messages, converted(each))
	}
	if given.tools {
		parameters := map[string]any{"type": "object", "properties": map[string]any{}}
		function := &openai.FunctionDefinition{Name: "add", Parameters: parameters}
		request.Tools = []openai.Tool{{Type: openai.ToolTypeFunction, Function: function}}
	}
	if !given.stream {
		reply, err := client.CreateChatCompletion(limit, request)
		if err != nil {
			return "", err
		}
		return reply.Choices[0].Message.Content, nil
	}
	stream, err := client.CreateChatCompletionStream(limit, request)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	var text strings.Builder
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return text.String(), nil
		}
		if err != nil {
			return "", err
		}
		if len(chunk.Choices) > 0 {
			text.WriteString(chunk.Choices[0].Delta.Content)
		}
	}
}

func main() {
	chat(ask, nil)
	attempt("models", func(limit context.Context) (any, error) {
		config := openai.DefaultConfig(goodKey)
		config.BaseURL = baseURL
		found, err := openai.NewClientWithConfig(config).ListModels(limit)
		names := []string{}
		for _, each := range found.Models {
			names = append(names, each.ID)
		}
		return names, err
	})
}
