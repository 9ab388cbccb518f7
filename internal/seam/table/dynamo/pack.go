package dynamo

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// packedBody is the size of a body from which on it is compressed in the head. A smaller body has
// too little that repeats.
const packedBody = 128

// packers are reused, because each has tables of more than half a megabyte.
var packers = sync.Pool{New: func() any {
	packer, err := flate.NewWriter(nil, flate.DefaultCompression)
	if err != nil {
		// The level is one of the package's own levels.
		panic(fmt.Sprintf("dynamo: compress bodies: %v", err))
	}
	return packer
}}

// pack compresses a body that is kept in the head: a write costs a unit for each KB of the head,
// and JSON shrinks to less than half. It returns nil for a body that would not become smaller.
func pack(body []byte) []byte {
	if len(body) < packedBody {
		return nil
	}
	packer, _ := packers.Get().(*flate.Writer)
	defer packers.Put(packer)
	var out bytes.Buffer
	packer.Reset(&out)
	if _, err := packer.Write(body); err != nil {
		return nil // a buffer in memory refuses no write
	}
	if packer.Close() != nil || out.Len() >= len(body) {
		return nil
	}
	return out.Bytes()
}

// unpackers are reused, because each has a window of 32 KB.
var unpackers = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// unpack is the reverse of pack. Only bodies of up to inlineBody bytes are packed, so a longer
// text is damaged.
func unpack(packed []byte) ([]byte, error) {
	unpacker, _ := unpackers.Get().(io.ReadCloser)
	defer unpackers.Put(unpacker)
	again, _ := unpacker.(flate.Resetter)
	if err := again.Reset(bytes.NewReader(packed), nil); err != nil {
		return nil, fmt.Errorf("unpack body: %w", err)
	}
	body, err := io.ReadAll(io.LimitReader(unpacker, inlineBody+1))
	if err != nil {
		return nil, fmt.Errorf("unpack body: %w", err)
	}
	if len(body) > inlineBody {
		return nil, fmt.Errorf("unpack body: it holds more than %d bytes", inlineBody)
	}
	return body, nil
}

// encodeBody returns the attribute of the head in which a body is stored, and its value.
func encodeBody(body []byte) (name string, value types.AttributeValue) {
	if packed := pack(body); packed != nil {
		return namePacked, binary(packed)
	}
	return nameBody, binary(body)
}

// decodeBody returns the body that is stored in a head, nil if there is none.
func decodeBody(from stored) ([]byte, error) {
	if packed, ok := from[namePacked].(*types.AttributeValueMemberB); ok {
		return unpack(packed.Value)
	}
	if body, ok := from[nameBody].(*types.AttributeValueMemberB); ok {
		return body.Value, nil
	}
	return nil, nil
}
