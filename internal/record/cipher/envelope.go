package cipher

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// bodyMark begins an encrypted body, and attrMark an encrypted attribute. No JSON begins with them.
// Vectors and the agents' own checkpoints are bytes of agents, which may begin with them. So they
// count only in the items of marked deployments, where each such body is encrypted itself.
var bodyMark = []byte("\x00slipway encrypted 1\x00")

const attrMark = "encrypted:"

// header is the part of an encrypted body that is not encrypted.
type header struct {
	Deployment string `json:"d"`
	// Context is the encryption context, a JSON object or nothing.
	Context json.RawMessage `json:"c,omitempty"`
	// Fields are the encrypted fields.
	Fields map[string][]byte `json:"f,omitempty"`
	// Whole says that the only field is the whole body.
	Whole bool `json:"w,omitempty"`
	// Size is how many bytes the body had before its encryption. Bodies that an earlier version has
	// encrypted lack it.
	Size int `json:"n,omitempty"`
}

// sizeOf returns how many bytes an encrypted body had before its encryption, as far as it says.
func (h header) sizeOf(body []byte) int {
	if 0 < h.Size && h.Size <= table.MaxBody {
		return h.Size
	}
	return len(body)
}

func isSealed(body []byte) bool { return bytes.HasPrefix(body, bodyMark) }

// join writes an encrypted body.
func (h header) join(rest []byte) []byte {
	text := record.Encode(h)
	body := make([]byte, 0, len(bodyMark)+binary.MaxVarintLen64+len(text)+len(rest))
	body = binary.AppendUvarint(append(body, bodyMark...), uint64(len(text)))
	return append(append(body, text...), rest...)
}

// split reads an encrypted body.
func split(body []byte) (h header, rest []byte, err error) {
	body = body[len(bodyMark):]
	length, n := binary.Uvarint(body)
	if n <= 0 || uint64(len(body)-n) < length {
		return h, nil, fmt.Errorf("an encrypted body of %d bytes is cut off", len(body))
	}
	end := n + int(length)
	if err := json.Unmarshal(body[n:end], &h); err != nil {
		return h, nil, fmt.Errorf("decode the header of an encrypted body: %w", err)
	}
	return h, body[end:], nil
}

func encodeAttr(body []byte) string { return attrMark + base64.StdEncoding.EncodeToString(body) }

func decodeAttr(text string) ([]byte, error) {
	body, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, attrMark))
	if err == nil && !isSealed(body) {
		err = fmt.Errorf("an attribute of %d bytes is no encrypted value", len(body))
	}
	return body, err
}

// question collects the values of one question, each with the work to do with its answer.
type question struct {
	values []graph.EncryptedValue
	take   []func(made []byte) error
}

func (q *question) add(value graph.EncryptedValue, take func(made []byte) error) {
	q.values, q.take = append(q.values, value), append(q.take, take)
}

// encrypt asks for the encryption of a body. done gets the encrypted body, when contextOf knows the
// context under which the values were encrypted.
func (q *question) encrypt(l layout, deployment string, own json.RawMessage, body []byte, contextOf func(own json.RawMessage) json.RawMessage) (done func() []byte, err error) {
	h := header{Deployment: deployment, Fields: map[string][]byte{}, Size: len(body)}
	var rest []byte
	add := func(name string, isJSON bool, data []byte, take func([]byte)) {
		q.add(graph.EncryptedValue{Model: l.model, Field: name, Context: own, JSON: isJSON, Data: data}, func(made []byte) error {
			take(made)
			return nil
		})
	}
	if len(l.fields) > 0 && len(l.fields[0].members) == 0 {
		h.Whole = true
		name := l.fields[0].name
		add(name, true, body, func(made []byte) { h.Fields[name] = made })
	} else {
		if body, err = q.sealFields(l, body, add, h.Fields); err != nil {
			return nil, err
		}
		add(l.rest, false, body, func(made []byte) { rest = made })
	}
	return func() []byte {
		h.Context = contextOf(own)
		return h.join(rest)
	}, nil
}

// sealFields asks for the encryption of the fields, and returns the rest of the body.
func (q *question) sealFields(l layout, body []byte, add func(string, bool, []byte, func([]byte)), into map[string][]byte) ([]byte, error) {
	if len(l.fields) == 0 {
		return body, nil
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, fmt.Errorf("a body of the model %s is no JSON object: %w", l.model, err)
	}
	for _, f := range l.fields {
		value, err := f.take(members)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.name, err)
		}
		if value != nil {
			add(f.name, true, value, func(made []byte) { into[f.name] = made })
		}
	}
	return record.Encode(members), nil
}

// decrypt asks for the decryption of a body. done gets the body when all values are known.
func (q *question) decrypt(l layout, h header, rest []byte) (done func() ([]byte, error)) {
	fields := map[string][]byte{}
	for name, data := range h.Fields {
		q.add(graph.EncryptedValue{Model: l.model, Field: name, Context: h.Context, JSON: true, Data: data}, func(made []byte) error {
			if !json.Valid(made) {
				return failed(fmt.Sprintf("The repository's own encryption has failed: the decrypted field %s of the model %s is no JSON.", name, l.model))
			}
			fields[name] = made
			return nil
		})
	}
	if h.Whole {
		return func() ([]byte, error) { return fields[l.fields[0].name], nil }
	}
	q.add(graph.EncryptedValue{Model: l.model, Field: l.rest, Context: h.Context, Data: rest}, func(made []byte) error {
		rest = made
		return nil
	})
	return func() ([]byte, error) {
		if len(fields) == 0 {
			return rest, nil
		}
		members := map[string]json.RawMessage{}
		if err := json.Unmarshal(rest, &members); err != nil || members == nil {
			return nil, fmt.Errorf("a decrypted body of the model %s is no JSON object", l.model)
		}
		for _, f := range l.fields {
			if value, ok := fields[f.name]; ok {
				if err := f.put(members, value); err != nil {
					return nil, fmt.Errorf("the decrypted field %s of the model %s is no JSON object", f.name, l.model)
				}
			}
		}
		return record.Encode(members), nil
	}
}
