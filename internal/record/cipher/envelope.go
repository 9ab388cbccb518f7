package cipher

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/slipway-run/slipway/internal/record/keys"
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

// question collects the values of one question, with the work to do with the answers.
type question struct {
	values []graph.EncryptedValue
	// made are the answers to the values, and context is the context of all of them, nil if each
	// value has its own.
	made    [][]byte
	context json.RawMessage
	// fill puts the answers into items or writes, blank puts empty parts there.
	fill  []func() error
	blank []func()
}

// add adds a value, and returns its place among the values.
func (q *question) add(value graph.EncryptedValue) int {
	q.values = append(q.values, value)
	return len(q.values) - 1
}

// questionTo returns the question to a deployment, which may be new.
func questionTo(questions map[keys.DeploymentParts]*question, of keys.DeploymentParts) *question {
	if questions[of] == nil {
		questions[of] = &question{}
	}
	return questions[of]
}

func (q *question) then(fill func() error, blank func()) {
	q.fill, q.blank = append(q.fill, fill), append(q.blank, blank)
}

// encrypt asks for the encryption of a body, under its own context if the answers have none. done
// gets the encrypted body when all values are known.
func (q *question) encrypt(l layout, deployment string, own json.RawMessage, body []byte) (done func() []byte, err error) {
	h := header{Deployment: deployment, Context: own, Fields: map[string][]byte{}, Size: len(body)}
	fields, rest := map[string]int{}, 0
	addField := func(name string, data []byte) {
		fields[name] = q.add(graph.EncryptedValue{Model: l.model, Field: name, Context: own, JSON: true, Data: data})
	}
	if h.Whole = len(l.fields) > 0 && len(l.fields[0].members) == 0; h.Whole {
		addField(l.fields[0].name, body)
	} else {
		if body, err = takeFields(l, body, addField); err != nil {
			return nil, err
		}
		rest = q.add(graph.EncryptedValue{Model: l.model, Field: l.rest, Context: own, Data: body})
	}
	return func() []byte {
		if q.context != nil {
			h.Context = q.context
		}
		for name, place := range fields {
			h.Fields[name] = q.made[place]
		}
		if h.Whole {
			return h.join(nil)
		}
		return h.join(q.made[rest])
	}, nil
}

// takeFields passes the fields of a body to add, and returns the rest of the body.
func takeFields(l layout, body []byte, add func(name string, data []byte)) ([]byte, error) {
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
			add(f.name, value)
		}
	}
	return record.Encode(members), nil
}

// decrypt asks for the decryption of a body. done gets the body when all values are known.
func (q *question) decrypt(l layout, h header, rest []byte) (done func() ([]byte, error)) {
	fields, last := map[string]int{}, 0
	for name, data := range h.Fields {
		fields[name] = q.add(graph.EncryptedValue{Model: l.model, Field: name, Context: h.Context, JSON: true, Data: data})
	}
	if !h.Whole {
		last = q.add(graph.EncryptedValue{Model: l.model, Field: l.rest, Context: h.Context, Data: rest})
	}
	return func() ([]byte, error) {
		opened := map[string][]byte{}
		for name, place := range fields {
			if opened[name] = q.made[place]; !json.Valid(opened[name]) {
				return nil, fmt.Errorf("the decrypted field %s of the model %s is no JSON", name, l.model)
			}
		}
		switch {
		case h.Whole:
			return opened[l.fields[0].name], nil
		case len(opened) == 0:
			return q.made[last], nil
		}
		members := map[string]json.RawMessage{}
		if err := json.Unmarshal(q.made[last], &members); err != nil || members == nil {
			return nil, fmt.Errorf("a decrypted body of the model %s is no JSON object", l.model)
		}
		for _, f := range l.fields {
			if value, ok := opened[f.name]; ok {
				if err := f.put(members, value); err != nil {
					return nil, fmt.Errorf("the decrypted field %s of the model %s is no JSON object", f.name, l.model)
				}
			}
		}
		return record.Encode(members), nil
	}
}
