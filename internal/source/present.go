package source

// Present is a record that is still at its source, as far as the mirror knows.
type Present struct {
	Seq int64 // the store's number of its job
	Record
}

// PresentKey is the key of such a record alone: a source can have a million.
type PresentKey struct {
	Seq int64 // the store's number of the job
	Key string
}
