package workspace

import (
	"cmp"
	"context"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
)

// Member is a person in a workspace.
type Member struct {
	// ID is derived from the user, so that no user is a member twice.
	ID string `json:"-"`
	// User is an email address in small letters, or the subject that the person's tokens have.
	User string `json:"user"`
	// Issuer is the issuer of the subject: another issuer may use the same subject for another
	// person. It is "" for an email address, which any issuer may confirm.
	Issuer string `json:"issuer,omitempty"`
	Role   Role   `json:"role"`
	// Created is when the person became a member, Updated when the role was last set.
	Created time.Time `json:"-"`
	Updated time.Time `json:"-"`

	version int64
}

// Identity distinguishes the member from an earlier member that was the same person.
func (m Member) Identity() string { return m.ID + " " + clock.Format(m.Created) }

// Version counts the changes of a member.
func (m Member) Version() int64 { return m.version }

const (
	kindMember = "member"
	// longestUser is long enough for every email address, longestIssuer for a web address.
	longestUser   = 320
	longestIssuer = 500
)

// MemberID is the id of the member that a user is, or would be. Capital letters make no
// difference in email addresses.
func MemberID(user, issuer string) string { return id.Of(issuer, userOf(user)) }

// userOf returns the stored form of a user.
func userOf(user string) string {
	if strings.Contains(user, "@") {
		return strings.ToLower(user)
	}
	return user
}

func checkUser(user, issuer string) error {
	if user == "" || len(user) > longestUser || !utf8.ValidString(user) || strings.ContainsFunc(user, unicode.IsControl) || strings.TrimSpace(user) != user {
		return fault.New(fault.Invalid, "user: %q is neither an email address nor a subject.", user)
	}
	if strings.Contains(user, "@") {
		if address, err := mail.ParseAddress(user); err != nil || address.Address != user {
			return fault.New(fault.Invalid, "user: %q is not an email address, and a subject with @ is of no use.", user)
		}
		if issuer != "" {
			return fault.New(fault.Invalid, "issuer: an email address is good from every issuer of people; an issuer belongs to a subject.")
		}
		return nil
	}
	if at, err := url.Parse(issuer); err != nil || at.Scheme == "" || at.Host == "" || len(issuer) > longestIssuer {
		return fault.New(fault.Invalid, "issuer: a subject needs the address of its issuer, and %q is not an address.", issuer)
	}
	return nil
}

// AddMember makes a user a member of a workspace. A user who is a member already is a
// fault.Conflict.
func (s *Store) AddMember(ctx context.Context, workspaceID, user, issuer string, role Role, notes ...record.Note[Member]) (Member, error) {
	if _, err := ParseRole(string(role)); err != nil {
		return Member{}, err
	}
	if err := checkUser(user, issuer); err != nil {
		return Member{}, err
	}
	now := s.now()
	m := Member{ID: MemberID(user, issuer), User: userOf(user), Issuer: issuer, Role: role, Created: now, Updated: now, version: 1}
	var o record.Outbox
	o.AddOr(table.Check{Key: keys.Workspace(workspaceID), If: table.Present()}, record.Always(NotFound(workspaceID)))
	put := record.New(keys.Member(workspaceID, m.ID), kindMember, now, nil, record.Encode(m))
	o.AddOr(put, record.Always(fault.New(fault.Conflict, "%s is a member of the workspace already.", m.User)))
	o.Add(m.audit(ctx, audit.AddMember).Write(workspaceID, now))
	return record.CommitNew(ctx, s.table, o, m, notes...)
}

// audit is the entry of a change of the member.
func (m Member) audit(ctx context.Context, action audit.Action) audit.Entry {
	return audit.New(ctx, action, m.ID, strings.TrimSpace(strings.Join([]string{string(m.Role), m.User, m.Issuer}, " ")))
}

// SetRole gives a member another role. The last admin of a workspace stays an admin: another
// role is a fault.Conflict.
func (s *Store) SetRole(ctx context.Context, workspaceID, memberID string, role Role, expect record.Versions) (Member, error) {
	if _, err := ParseRole(string(role)); err != nil {
		return Member{}, err
	}
	return s.changeMember(ctx, workspaceID, memberID, expect, func(m Member) (Member, []table.Write) {
		if m.Role == role {
			return m, nil
		}
		now := s.now()
		change := record.Change(keys.Member(workspaceID, m.ID), now, nil, table.Equals(record.Version, m.version))
		m.Role, m.Updated, m.version = role, now, m.version+1
		change.Body = record.Encode(m)
		return m, []table.Write{change, m.audit(ctx, audit.UpdateMember).Write(workspaceID, now)}
	})
}

// RemoveMember takes a member out of a workspace; an unknown member is a fault.NotFound, and
// the last admin is a fault.Conflict.
func (s *Store) RemoveMember(ctx context.Context, workspaceID, memberID string, expect record.Versions) error {
	_, err := s.changeMember(ctx, workspaceID, memberID, expect, func(m Member) (Member, []table.Write) {
		return m, []table.Write{
			table.Delete{Key: keys.Member(workspaceID, m.ID), If: table.Equals(record.Version, m.version)},
			m.audit(ctx, audit.RemoveMember).Write(workspaceID, s.now()),
		}
	})
	return err
}

// changeMember reads a member and applies the writes that change returns, if the workspace can
// lose the member as an admin. If there are no writes, nothing changes.
func (s *Store) changeMember(
	ctx context.Context, workspaceID, memberID string, expect record.Versions, change func(Member) (Member, []table.Write),
) (Member, error) {
	return record.DecideValue(ctx, s.table, func(ctx context.Context) (Member, record.Outbox, error) {
		m, err := s.Member(ctx, workspaceID, memberID)
		if err = cmp.Or(err, expect.Check(m.version, "Member ID "+memberID)); err != nil {
			return Member{}, record.Outbox{}, err
		}
		wasAdmin := m.Role == Admin
		m, writes := change(m)
		if wasAdmin && len(writes) > 0 {
			guard, err := s.KeepAdmin(ctx, workspaceID, keys.Member(workspaceID, m.ID))
			return m, record.Write(append(writes, guard)...), err
		}
		return m, record.Write(writes...), nil
	})
}

// Member returns a member; an unknown member is a fault.NotFound.
func (s *Store) Member(ctx context.Context, workspaceID, memberID string) (Member, error) {
	notFound := fault.New(fault.NotFound, "Member ID %s not found.", memberID)
	if !id.Valid(memberID) {
		return Member{}, notFound
	}
	return record.One(ctx, s.table, "member", keys.Member(workspaceID, strings.ToLower(memberID)), notFound, decodeMember)
}

// Members returns a workspace's members, by user.
func (s *Store) Members(ctx context.Context, workspaceID string) ([]Member, error) {
	list, err := record.All(ctx, s.table, "members", keys.Members(workspaceID), decodeMember)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b Member) int { return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Issuer, b.Issuer)) })
	return list, nil
}

func decodeMember(item *table.Item) (Member, error) {
	m := Member{ID: item.Key.SK, version: item.Int(record.Version)}
	r := record.Read(item, kindMember)
	r.Decode(&m)
	m.Created, m.Updated = r.Created(), r.Updated()
	return m, r.Err()
}
