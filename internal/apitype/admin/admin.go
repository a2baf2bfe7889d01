// Package admin is the part of the API's JSON that is about the installation: its queues
// and workers, what retention keeps, its policies, its sources, and who may use all that.
package admin
