package authservice

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"
)

// userScope is Slack's parameter for the scopes of the user's own token; Slack's scope
// parameter is for the app's bot.
const userScope = "user_scope"

// slackScopes moves the scopes to the parameter in which Slack expects them, separated by
// commas: to user_scope where the provider's auth_url has that parameter, else to scope.
func (c *conversation) slackScopes() {
	address, err := url.Parse(c.Endpoint.AuthURL)
	if err != nil || !address.Query().Has(userScope) {
		c.Scopes = []string{strings.Join(c.Scopes, ",")}
		return
	}
	query := address.Query()
	scopes := strings.FieldsFunc(query.Get(userScope), func(r rune) bool { return r == ',' || r == ' ' })
	for _, scope := range c.Scopes {
		scopes = with(scopes, scope)
	}
	query.Del(userScope)
	address.RawQuery, c.Scopes = query.Encode(), nil
	c.Endpoint.AuthURL = address.String()
	c.consent = append(c.consent, oauth2.SetAuthURLParam(userScope, strings.Join(scopes, ",")))
}

// slackAnswers reads the answers of Slack's token endpoint: if no bot token was requested,
// they contain the user's token in a separate member.
type slackAnswers struct{ http.RoundTripper }

func (t slackAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(answer.Body)
	if err = cmp.Or(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	text = liftUser(text)
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return answer, nil
}

// liftUser moves the user's token to the place where OAuth expects a token, if there is no
// token at that place.
func liftUser(answer []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(answer, &members) != nil || members["access_token"] != nil {
		return answer
	}
	var user map[string]json.RawMessage
	if json.Unmarshal(members["authed_user"], &user) != nil {
		return answer
	}
	for _, name := range []string{"access_token", "token_type", "refresh_token", "expires_in", "scope"} {
		if value, ok := user[name]; ok {
			members[name] = value
		}
	}
	lifted, err := json.Marshal(members)
	if err != nil {
		return answer
	}
	return lifted
}
