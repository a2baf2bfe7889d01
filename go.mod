module redrive

go 1.26.0

require (
	github.com/google/uuid v1.6.0
	github.com/sosodev/duration v1.4.0
)
