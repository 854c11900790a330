// client: standardwebhooks (Go)
// registry: Go
// packages: github.com/standard-webhooks/standard-webhooks/libraries@v0.0.1
// door: webhook
package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

type delivery struct {
	Headers map[string]string
	Body    string
	Secret  string
}

func verified(given delivery, body string) func(context.Context) (any, error) {
	return func(context.Context) (any, error) {
		library, err := standardwebhooks.NewWebhook(given.Secret)
		// As docs/hooks.md says: what is not in Base64 is given as bytes.
		if !strings.HasPrefix(given.Secret, "whsec_") {
			library, err = standardwebhooks.NewWebhookRaw([]byte(given.Secret))
		}
		if err != nil {
			return nil, err
		}
		headers := http.Header{}
		for name, value := range given.Headers {
			headers.Set(name, value)
		}
		return library.Verify([]byte(body), headers) == nil, nil
	}
}

func main() {
	data, err := os.ReadFile(os.Getenv("LARKSPUR_DELIVERIES"))
	if err != nil {
		panic(err)
	}
	var found struct{ Prefixed, Plain delivery }
	if err := json.Unmarshal(data, &found); err != nil {
		panic(err)
	}
	attempt("prefixed secret", verified(found.Prefixed, found.Prefixed.Body))
	attempt("plain secret", verified(found.Plain, found.Plain.Body))
	attempt("changed body", verified(found.Prefixed, found.Prefixed.Body+" "))
}
