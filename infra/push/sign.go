package push

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// The headers of a signed call.
const (
	// TimestampHeader holds the moment of the call in seconds since 1970.
	TimestampHeader = "Perigee-Timestamp"
	// SignatureHeader holds "v1=" and the signature in hex.
	SignatureHeader = "Perigee-Signature"
)

// Sign makes the values of both headers: the signature is the HMAC-SHA256,
// under the route's secret, of the timestamp, a dot and the body.
func Sign(secret string, at time.Time, body []byte) (timestamp, signature string) {
	timestamp = strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return timestamp, "v1=" + hex.EncodeToString(mac.Sum(nil))
}
