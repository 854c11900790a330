// client: mcp-go
// registry: Go
// packages: github.com/mark3labs/mcp-go@v1.2.1
// door: mcp mcp-serve
package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

func connect(limit context.Context, key string) (*client.Client, error) {
	var found *client.Client
	var err error
	if door == "mcp" {
		headers := map[string]string{"Authorization": "Bearer " + key}
		found, err = client.NewStreamableHttpClient(url+"/mcp", transport.WithHTTPHeaders(headers))
	} else {
		environ := []string{
			"LARKSPUR_HOME=" + os.Getenv("LARKSPUR_GATEWAY_HOME"), "HOME=" + os.Getenv("HOME"),
		}
		found, err = client.NewStdioMCPClient(os.Getenv("LARKSPUR_PROGRAM"), environ, "mcp", "serve")
	}
	if err != nil {
		return nil, err
	}
	if err := found.Start(limit); err != nil {
		return nil, err
	}
	request := mcp.InitializeRequest{}
	request.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	request.Params.ClientInfo = mcp.Implementation{Name: "compatibility", Version: "1"}
	_, err = found.Initialize(limit, request)
	return found, err
}

func call(limit context.Context, session *client.Client, name string, given map[string]any) (string, error) {
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = name, given
	found, err := session.CallTool(limit, request)
	if err != nil {
		return "", err
	}
	return found.Content[0].(mcp.TextContent).Text, nil
}

func with(key string, work func(context.Context, *client.Client) (any, error)) func(context.Context) (any, error) {
	return func(limit context.Context) (any, error) {
		session, err := connect(limit, key)
		if err != nil {
			return nil, err
		}
		defer session.Close()
		return work(limit, session)
	}
}

func names(limit context.Context, session *client.Client) (any, error) {
	found, err := session.ListTools(limit, mcp.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, each := range found.Tools {
		names = append(names, each.Name)
	}
	return names, nil
}

func main() {
	attempt("list", with(goodKey, names))
	attempt("call", with(goodKey, func(limit context.Context, session *client.Client) (any, error) {
		made, err := call(limit, session, "create_task", map[string]any{"instruction": prompt("plain")})
		if err != nil {
			return nil, err
		}
		var task struct {
			ID string `json:"task_id"`
		}
		if err := json.Unmarshal([]byte(made), &task); err != nil {
			return nil, err
		}
		given := map[string]any{"task_id": task.ID, "wait_seconds": 50}
		return call(limit, session, "task_result", given)
	}))
	attempt("mistake", with(goodKey, func(limit context.Context, session *client.Client) (any, error) {
		return call(limit, session, "task_status", map[string]any{"task_ids": []string{"task-none"}})
	}))
	if door == "mcp" {
		attempt("wrong key", with(wrongKey, names))
	}
}
