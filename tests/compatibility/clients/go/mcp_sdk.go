// client: MCP go-sdk
// registry: Go
// packages: github.com/modelcontextprotocol/go-sdk@v1.8.0
// door: mcp mcp-serve
package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type withKey struct{ key string }

func (given withKey) RoundTrip(request *http.Request) (*http.Response, error) {
	request.Header.Set("Authorization", "Bearer "+given.key)
	return http.DefaultTransport.RoundTrip(request)
}

var count atomic.Int64

func connect(limit context.Context, key string) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "compatibility", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
			count.Add(1)
		},
	})
	if door == "mcp" {
		return client.Connect(limit, &mcp.StreamableClientTransport{
			Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: withKey{key}},
		}, nil)
	}
	command := exec.Command(os.Getenv("LARKSPUR_PROGRAM"), "mcp", "serve")
	command.Env = []string{
		"LARKSPUR_HOME=" + os.Getenv("LARKSPUR_GATEWAY_HOME"), "HOME=" + os.Getenv("HOME"),
	}
	return client.Connect(limit, &mcp.CommandTransport{Command: command}, nil)
}

func call(limit context.Context, session *mcp.ClientSession, name string, given map[string]any) (string, error) {
	parameters := &mcp.CallToolParams{Name: name, Arguments: given}
	parameters.SetProgressToken("progress")
	found, err := session.CallTool(limit, parameters)
	if err != nil {
		return "", err
	}
	return found.Content[0].(*mcp.TextContent).Text, nil
}

func result(limit context.Context, session *mcp.ClientSession, scenario string) (any, error) {
	made, err := call(limit, session, "create_task", map[string]any{"instruction": prompt(scenario)})
	if err != nil {
		return nil, err
	}
	var task struct {
		ID string `json:"task_id"`
	}
	if err := json.Unmarshal([]byte(made), &task); err != nil {
		return nil, err
	}
	return call(limit, session, "task_result", map[string]any{"task_id": task.ID, "wait_seconds": 50})
}

func names(limit context.Context, session *mcp.ClientSession) (any, error) {
	found, err := session.ListTools(limit, nil)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, each := range found.Tools {
		names = append(names, each.Name)
	}
	return names, nil
}

func with(key string, work func(context.Context, *mcp.ClientSession) (any, error)) func(context.Context) (any, error) {
	return func(limit context.Context) (any, error) {
		session, err := connect(limit, key)
		if err != nil {
			return nil, err
		}
		defer session.Close()
		return work(limit, session)
	}
}

func main() {
	attempt("list", with(goodKey, names))
	attempt("call", with(goodKey, func(limit context.Context, session *mcp.ClientSession) (any, error) {
		return result(limit, session, "plain")
	}))
	attempt("progress", with(goodKey, func(limit context.Context, session *mcp.ClientSession) (any, error) {
		_, err := result(limit, session, "slow")
		return count.Load(), err
	}))
	attempt("mistake", with(goodKey, func(limit context.Context, session *mcp.ClientSession) (any, error) {
		return call(limit, session, "task_status", map[string]any{"task_ids": []string{"task-none"}})
	}))
	if door == "mcp" {
		attempt("wrong key", with(wrongKey, names))
	}
}
