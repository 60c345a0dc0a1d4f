package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/posthorn/posthorn"
)

// Dev is what a server in development mode gives to anybody.
type Dev struct {
	Token  string `json:"token"`
	User   string `json:"user"`
	Device string `json:"device"`
}

// DevToken signs a user in by name at a server that runs with --dev.
func DevToken(ctx context.Context, baseURL, user string) (Dev, error) {
	u, err := apiURL(baseURL)
	if err != nil {
		return Dev{}, err
	}
	body, err := json.Marshal(map[string]string{"user": user})
	if err != nil {
		return Dev{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.JoinPath("/api/v1/dev/token").String(), bytes.NewReader(body))
	if err != nil {
		return Dev{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true // asked once, no connection is kept
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Dev{}, fmt.Errorf("client: dev token: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return Dev{}, fmt.Errorf("client: dev token: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return Dev{}, problem(resp.StatusCode, answer)
	}
	var d Dev
	if err := json.Unmarshal(answer, &d); err != nil {
		return Dev{}, fmt.Errorf("client: dev token: %w", err)
	}
	if d.Token == "" {
		return Dev{}, errors.New("client: dev token: the answer holds none")
	}
	return d, nil
}

// problem reads an RFC 9457 answer.
func problem(status int, answer []byte) error {
	var p struct {
		Code   posthorn.Code `json:"code"`
		Title  string        `json:"title"`
		Detail string        `json:"detail"`
	}
	if json.Unmarshal(answer, &p) != nil || p.Code == "" {
		return fmt.Errorf("client: HTTP status %d", status)
	}
	if p.Detail == "" {
		p.Detail = p.Title
	}
	return &posthorn.Error{Code: p.Code, Msg: p.Detail}
}
