package apitype

import (
	"bytes"
	"encoding/json"
)

// PolicyPatch is the name of a retry policy, or an object with some of its members.
type PolicyPatch []byte

// MarshalJSON returns the patch as it was read.
func (p PolicyPatch) MarshalJSON() ([]byte, error) { return json.RawMessage(p).MarshalJSON() }

// UnmarshalJSON keeps a copy of the patch.
func (p *PolicyPatch) UnmarshalJSON(data []byte) error {
	*p = bytes.Clone(data)
	return nil
}

// Meta is a JSON object that a producer says about its job, kept byte for byte.
type Meta []byte

// MarshalJSON returns the object as it was read.
func (m Meta) MarshalJSON() ([]byte, error) { return json.RawMessage(m).MarshalJSON() }

// UnmarshalJSON keeps a copy of the object.
func (m *Meta) UnmarshalJSON(data []byte) error {
	*m = bytes.Clone(data)
	return nil
}
