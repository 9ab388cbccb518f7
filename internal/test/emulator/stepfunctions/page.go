package stepfunctions

import (
	"strconv"

	"github.com/slipway-run/slipway/internal/test/emulator/awsjson"
)

// Sizes of a page.
const (
	defaultPage = 100
	maxPage     = 1000
)

// pageRequest asks for one page of a list.
type pageRequest struct {
	Max   int    `json:"maxResults"`
	Token string `json:"nextToken"`
}

// page cuts a page out of a list. A token is the position at which the next page begins: items
// that are inserted before it meanwhile shift the following items, which the service does not
// promise to avoid either.
func page[T any](list []T, in pageRequest) (items []T, next string, err error) {
	size := in.Max
	if size == 0 {
		size = defaultPage
	}
	if size < 0 || size > maxPage {
		return nil, "", &awsjson.Error{Name: "ValidationException", Message: "maxResults must be from 0 to 1000"}
	}
	from := 0
	if in.Token != "" {
		if from, err = strconv.Atoi(in.Token); err != nil || from < 0 {
			return nil, "", &awsjson.Error{Name: "InvalidToken", Message: "Invalid Token: '" + in.Token + "'"}
		}
	}
	from = min(from, len(list))
	to := min(from+size, len(list))
	if to < len(list) {
		next = strconv.Itoa(to)
	}
	return list[from:to], next, nil
}
