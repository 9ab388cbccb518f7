package integration

import (
	"encoding/json"
	"errors"
)

// ParseApp reads a GitHub App from the JSON in which operators keep it. The JSON is secret.
// Its members are app_id, slug, client_id, client_secret and private_key, and for GitHub
// Enterprise web_url and api_url. ParseApp ignores other members.
func ParseApp(text []byte) (*App, error) {
	var kept struct {
		AppID        int64  `json:"app_id"`
		Slug         string `json:"slug"`
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		PrivateKey   string `json:"private_key"`
		WebURL       string `json:"web_url"`
		APIURL       string `json:"api_url"`
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		return nil, errors.New("the GitHub App is not JSON with app_id, slug, client_id, client_secret and private_key") // err may quote a secret
	}
	return &App{
		ID: kept.AppID, Slug: kept.Slug, ClientID: kept.ClientID, ClientSecret: kept.ClientSecret, PrivateKey: []byte(kept.PrivateKey),
		WebURL: kept.WebURL, APIURL: kept.APIURL,
	}, nil
}
