package templates

func problemClass(status int) string {
	if status >= 500 {
		return "is-dead"
	}
	return ""
}

func problemIcon(status int) string {
	switch {
	case status == 404:
		return "search"
	case status == 410:
		return "discarded"
	case status >= 500:
		return "failed"
	}
	return "non-retryable"
}

// conflictTitle says what was not done.
func conflictTitle(v Conflict) string {
	switch v.Action {
	case "replay":
		return "Not replayed"
	case "discard":
		return "Not discarded"
	case "cancel":
		return "Not cancelled"
	case "forward":
		return "Not forwarded"
	}
	return "Nothing was changed"
}
