package apitype

// AuditEntry is an entry of the audit log.
type AuditEntry struct {
	// The number of the entry.
	Seq int64 `json:"seq"`
	// When it was written.
	At Time `json:"at"`
	// Who acted.
	Actor string `json:"actor"`
	// The address from which they acted.
	Address string `json:"address,omitzero"`
	// What they did.
	Action string `json:"action"`
	// What they acted on.
	Subject string `json:"subject,omitzero"`
	// The filter with which they selected it.
	Filter string `json:"filter,omitzero"`
	// How many things they acted on.
	Count int64 `json:"count"`
	// What it was before.
	Before string `json:"before,omitzero"`
	// What it was afterwards.
	After string `json:"after,omitzero"`
	// A hash over this entry and those before, in hexadecimal digits: it shows that no entry was changed or removed.
	Hash string `json:"hash,omitzero"`
}

// AuditLog is one page of the audit log.
type AuditLog struct {
	// The entries, the newest first.
	Entries []AuditEntry `json:"entries"`
	NumberedPage
}

// Incomplete is the last line of an export that ends before the list does.
type Incomplete struct {
	// Why it ends.
	Incomplete string `json:"incomplete"`
}
