package directory

const (
	putUserSQL = `insert into posthorn.users as u (user_id, name, avatar) values ($1, coalesce($2, ''), coalesce($3, ''))
    on conflict (user_id) do update set name = coalesce($2, u.name), avatar = coalesce($3, u.avatar), updated_at = clock_timestamp()
returning u.name, u.avatar, u.created_at`

	listUsersSQL = `select u.user_id, u.name, u.avatar, u.created_at from posthorn.users u where u.user_id > $1 order by u.user_id limit $2`

	tokenSQL = `select t.user_id, t.device_name, t.install, t.expires_at, t.revoked_at is not null or d.revoked_at is not null
  from posthorn.tokens t left join posthorn.devices d on d.user_id = t.user_id and d.device_name = t.device_name
 where t.token_hash = $1`

	// The device's tokens carry their own mark, so that a device that begins again does not revive the old ones.
	insertTokenSQL = `with known as (select u.user_id from posthorn.users u where u.user_id = $2),
  device as (insert into posthorn.devices (user_id, device_name) select k.user_id, $3 from known k
    on conflict (user_id, device_name) do update set revoked_at = null),
  token as (insert into posthorn.tokens (token_hash, user_id, device_name, install, expires_at)
    select $1, k.user_id, $3, $4, coalesce($5::timestamptz, 'infinity') from known k)
select exists (select 1 from known)`

	deviceRevokedSQL = `select exists (select 1 from posthorn.devices d where d.user_id = $1 and d.device_name = $2 and d.revoked_at is not null)`

	revokeDeviceSQL = `with gone as (
    update posthorn.devices d set revoked_at = coalesce(d.revoked_at, clock_timestamp())
     where d.user_id = $1 and d.device_name = $2 returning d.device_id),
  tokens as (update posthorn.tokens t set revoked_at = clock_timestamp()
     where t.user_id = $1 and t.device_name = $2 and t.revoked_at is null),
  told as (insert into posthorn.signals (kind, key) select 'revoke', g.device_id::text from gone g)
select g.device_id from gone g`

	keySQL = `select k.key_id::text, k.name, k.scopes, k.revoked_at is not null from posthorn.server_keys k where k.key_hash = $1`

	insertKeySQL = `insert into posthorn.server_keys (key_hash, name, scopes) values ($1, $2, $3) returning key_id::text`

	listKeysSQL = `select k.key_id::text, k.name, k.scopes, k.revoked_at is not null from posthorn.server_keys k where k.key_id > $1 order by k.key_id limit $2`

	revokeKeySQL = `update posthorn.server_keys k set revoked_at = coalesce(k.revoked_at, clock_timestamp()) where k.key_id = $1`
)
