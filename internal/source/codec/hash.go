package codec

import "redrive/internal/source"

// Fields are those of a record that is kept as a hash. One that the hash does not have is
// empty.
type Fields map[string]string

// Hash completes a record from the fields of its hash, for the systems that keep it in
// one; ok is false for a name that is not of such a system.
func Hash(name string) (read func(*source.Record, Fields), ok bool) {
	read, ok = hashes[name]
	return read, ok
}

var hashes = map[string]func(*source.Record, Fields){}
