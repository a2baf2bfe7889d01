package apitype

import "encoding/json"

// PolicyPatch is the name of a retry policy, or an object with some of its members.
type PolicyPatch json.RawMessage

// MarshalJSON returns the patch as it was read.
func (p PolicyPatch) MarshalJSON() ([]byte, error) { return json.RawMessage(p).MarshalJSON() }

// UnmarshalJSON keeps the patch.
func (p *PolicyPatch) UnmarshalJSON(data []byte) error {
	return (*json.RawMessage)(p).UnmarshalJSON(data)
}
