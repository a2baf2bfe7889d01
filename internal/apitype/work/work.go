// Package work is the part of the API's JSON that is about jobs: what enqueues them, what
// is said of one and of many, the error groups in which their failures are gathered, and
// the operations that act on many of them at once.
package work
