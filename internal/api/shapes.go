package api

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// These structs describe, for the OpenAPI document, what wire writes. They are never filled; a test compares them with
// the bytes.

type event struct {
	Conv     string `json:"conv"`
	Seq      int64  `json:"seq"`
	Kind     string `json:"kind" enum:"open,msg,edit,recall,react,join,leave,meta" doc:"Later versions may add kinds."`
	Mid      string `json:"mid,omitempty" doc:"Made by the server, unique, sortable by the database's time."`
	Sender   string `json:"sender,omitempty" doc:"Absent where a server key spoke for nobody."`
	Via      string `json:"via,omitempty" enum:"server" doc:"Sent for the user over HTTP or SQL, not from a device."`
	Cmid     string `json:"cmid,omitempty"`
	Body     string `json:"body,omitempty"`
	Data     object `json:"data,omitempty" doc:"The bytes that were sent."`
	ReplyTo  int64  `json:"reply_to,omitempty"`
	Target   int64  `json:"target,omitempty"`
	Recalled bool   `json:"recalled,omitempty"`
	At       int64  `json:"at,omitempty" doc:"The database's time in milliseconds since 1970."`
}

type page struct {
	Conv      string  `json:"conv"`
	Events    []event `json:"events" nullable:"false"`
	Skip      []span  `json:"skip" nullable:"false" doc:"Stretches that the viewer may not see: [from, to], both included."`
	Upto      int64   `json:"upto" doc:"The after of the next page."`
	Start     int64   `json:"start"`
	Head      int64   `json:"head" doc:"The newest seq that the viewer may see."`
	Floor     int64   `json:"floor" doc:"The lowest seq whose content is still stored."`
	Truncated bool    `json:"truncated"`
	More      bool    `json:"more"`
	RV        int64   `json:"rv"`
	Epoch     int64   `json:"epoch" doc:"Names the sequence space; compare it for equality only."`
}

type span [2]int64

// Schema is a pair.
func (span) Schema(huma.Registry) *huma.Schema {
	two := 2
	return &huma.Schema{Type: huma.TypeArray, Items: seqSchema(), MinItems: &two, MaxItems: &two}
}

type entry struct {
	Conv      string `json:"conv"`
	Kind      string `json:"kind" enum:"direct,group,channel"`
	Title     string `json:"title,omitempty"`
	Role      string `json:"role,omitempty" enum:"owner,admin,member" doc:"The user's; absent for a server key."`
	Head      int64  `json:"head" doc:"The newest seq that the viewer may see."`
	Floor     int64  `json:"floor"`
	Start     int64  `json:"start" doc:"A device's; 0 over HTTP."`
	Delivered int64  `json:"delivered" doc:"A device's; 0 over HTTP."`
	Read      int64  `json:"read"`
	Unread    int64  `json:"unread" doc:"At most 1000."`
	RV        int64  `json:"rv"`
	Last      event  `json:"last,omitempty" doc:"The newest visible message."`
	LastAt    int64  `json:"last_at,omitempty"`
	Left      bool   `json:"left"`
	Epoch     int64  `json:"epoch"`
}

type list struct {
	Convs []entry `json:"convs" nullable:"false"`
	Next  string  `json:"next,omitempty" doc:"Absent at the end."`
	Since string  `json:"since,omitempty"`
}

// Schema of the socket's page.
func (pageAnswer) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[page](), true, "")
}

// Schema of the socket's entry.
func (entryAnswer) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[entry](), true, "")
}

// Schema of the socket's list.
func (listAnswer) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[list](), true, "")
}
