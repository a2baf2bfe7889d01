package apitype

import (
	"bytes"
	"encoding/json"
)

// These types keep JSON byte for byte. Unlike [json.RawMessage], each has a name of its own in
// the OpenAPI document. What they hold is checked where it is used.

// PolicyPatch is the name of a retry policy, or an object with some of its members.
type PolicyPatch []byte

// MarshalJSON returns the patch as it was read.
func (p PolicyPatch) MarshalJSON() ([]byte, error) { return json.RawMessage(p).MarshalJSON() }

// UnmarshalJSON keeps a copy of the patch: the decoder uses its buffer again.
func (p *PolicyPatch) UnmarshalJSON(data []byte) error {
	*p = bytes.Clone(data)
	return nil
}

// Meta is a JSON object with what a producer notes about its job.
type Meta []byte

// MarshalJSON returns the object as it was read.
func (m Meta) MarshalJSON() ([]byte, error) { return json.RawMessage(m).MarshalJSON() }

// UnmarshalJSON keeps a copy of the object: the decoder uses its buffer again.
func (m *Meta) UnmarshalJSON(data []byte) error {
	*m = bytes.Clone(data)
	return nil
}
