// Scenarios for clients in Go, as in ../python/scenarios.py.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"strings"
	"time"
)

var (
	url     = os.Getenv("LARKSPUR_URL")
	baseURL = url + "/v1"
	goodKey = os.Getenv("LARKSPUR_KEY")
	door    = os.Getenv("LARKSPUR_DOOR")
)

const (
	model         = "larkspur"
	wrongKey      = "no-such-key-0000000000000000000000000000"
	scenarioLimit = 60 * time.Second
)

// A turn of a conversation; picture is a data URL.
type turn struct{ role, text, picture string }

type options struct {
	stream, tools bool
	key           string
}

func prompt(scenario string) string {
	return fmt.Sprintf("case: %s [%s]", scenario, os.Getenv("LARKSPUR_CASE"))
}

func say(line map[string]any) {
	// The scenario comes first, as the reader of these lines expects.
	name, _ := json.Marshal(line["scenario"])
	delete(line, "scenario")
	rest, _ := json.Marshal(line)
	fmt.Printf("{\"scenario\": %s, %s\n", name, rest[1:])
}

func attempt(scenario string, work func(context.Context) (any, error)) {
	limit, cancel := context.WithTimeout(context.Background(), scenarioLimit)
	defer cancel()
	result, err := work(limit)
	if err != nil {
		say(map[string]any{"scenario": scenario, "error": err.Error()})
		return
	}
	say(map[string]any{"scenario": scenario, "result": result})
}

func picture() string {
	const side = 64
	red := image.NewRGBA(image.Rect(0, 0, side, side))
	for n := range side * side {
		red.Set(n%side, n/side, color.RGBA{255, 0, 0, 255})
	}
	var data bytes.Buffer
	if err := png.Encode(&data, red); err != nil {
		panic(err)
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(data.Bytes())
}

// chat does all scenarios of a chat client.
func chat(ask func(context.Context, []turn, options) (string, error), without map[string]string) {
	one := func(scenario string, work func(context.Context) (any, error)) {
		if reason, is := without[scenario]; is {
			say(map[string]any{"scenario": scenario, "absent": reason})
			return
		}
		attempt(scenario, work)
	}
	call := func(limit context.Context, turns []turn, given options) (any, error) {
		if given.key == "" {
			given.key = goodKey
		}
		return ask(limit, turns, given)
	}
	user := func(scenario string) turn { return turn{role: "user", text: prompt(scenario)} }
	single := func(scenario string, given options) func(context.Context) (any, error) {
		return func(limit context.Context) (any, error) {
			return call(limit, []turn{user(strings.Replace(scenario, "wrong key", "plain", 1))}, given)
		}
	}
	one("plain", single("plain", options{}))
	one("stream", single("stream", options{stream: true}))
	one("history", func(limit context.Context) (any, error) {
		var turns []turn
		var answer any
		for _, scenario := range []string{"write", "plain", "read"} {
			turns = append(turns, user(scenario))
			said, err := call(limit, turns, options{})
			if err != nil {
				return nil, err
			}
			turns, answer = append(turns, turn{role: "assistant", text: said.(string)}), said
		}
		return answer, nil
	})
	one("tools", single("tools", options{tools: true}))
	one("picture", func(limit context.Context) (any, error) {
		shown := turn{role: "user", text: prompt("picture"), picture: picture()}
		return call(limit, []turn{shown}, options{})
	})
	one("system", func(limit context.Context) (any, error) {
		system := turn{role: "system", text: "Speak like a pirate."}
		return call(limit, []turn{system, user("system")}, options{})
	})
	one("wrong key", single("wrong key", options{key: wrongKey}))
	one("failing", single("failing", options{}))
}
