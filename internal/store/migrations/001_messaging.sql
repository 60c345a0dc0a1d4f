-- Tables of the messaging core. docs/storage.md tells why they look like this. The schema name posthorn is replaced when
-- another is configured. Ids collate "C": they are compared as bytes, and the indexes stay valid across C libraries.

create table posthorn.sequence_space (
    one               boolean primary key default true check (one),
    epoch             bigint not null default 1 check (epoch between 1 and 9007199254740991),
    system_identifier bigint,
    timeline          text,
    trimmed_through   xid8 not null default '0'
);
insert into posthorn.sequence_space default values;

-- Every crash recovery, a promotion and a base backup empty an unlogged table; a clean restart keeps it. Whoever finds it
-- empty puts a new mark: a reader of the log that sees another mark must not trust transaction ids it remembers.
create unlogged table posthorn.boot (
    one   boolean primary key default true check (one),
    nonce uuid not null default gen_random_uuid()
);

create table posthorn.settings (
    name  text collate "C" primary key,
    value text not null
);
insert into posthorn.settings values ('channel', 'im_events');

-- Who may do what; filled from the table in the code by each migration run, so that SQL and Go judge alike.
create table posthorn.rules (
    kind text collate "C",
    act  text collate "C",
    role text collate "C",
    primary key (kind, act, role)
);

create table posthorn.users (
    user_id    text collate "C" primary key check (octet_length(user_id) between 1 and 128),
    name       text not null default '',
    avatar     text not null default '',
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp()
);

create table posthorn.devices (
    device_id     bigint generated always as identity primary key,
    user_id       text collate "C" not null references posthorn.users,
    device_name   text collate "C" not null check (octet_length(device_name) between 1 and 128),
    install_epoch bigint not null default 0 check (install_epoch between 0 and 9007199254740991),
    resume        uuid,
    resume_prev   uuid, -- good until a frame has arrived on the connection that was given resume
    last_seen_at  timestamptz,
    revoked_at    timestamptz,
    unique (user_id, device_name)
);

create table posthorn.tokens (
    token_hash  bytea primary key check (octet_length(token_hash) = 32),
    user_id     text collate "C" not null references posthorn.users,
    device_name text collate "C" not null,
    install     bigint,
    created_at  timestamptz not null default clock_timestamp(),
    expires_at  timestamptz not null,
    revoked_at  timestamptz
);
create index tokens_device on posthorn.tokens (user_id, device_name);

create table posthorn.server_keys (
    key_id     bigint generated always as identity primary key,
    name       text not null default '',
    key_hash   bytea not null unique check (octet_length(key_hash) = 32),
    scopes     text[] not null,
    created_at timestamptz not null default clock_timestamp(),
    revoked_at timestamptz
);

-- The row is the lock of its conversation. Sends lock it and do not update it: next_seq and last_at follow lazily, so
-- that no chain of dead versions grows behind a long transaction. The head is defined in one place, the function head.
create table posthorn.conversations (
    conv_id             text collate "C" primary key check (octet_length(conv_id) between 1 and 128),
    kind                text collate "C" not null check (kind in ('direct', 'group', 'channel')),
    title               text not null default '',
    history             text not null default 'joined' check (history in ('joined', 'all')),
    next_seq            bigint not null default 1 check (next_seq between 1 and 9007199254740992),
    floor_seq           bigint not null default 1 check (floor_seq between 1 and 9007199254740992),
    last_at             timestamptz,
    created_by          text collate "C" not null default '',
    open_cmid           text collate "C",
    direct_pair         text collate "C" unique, -- the two people of a direct conversation
    mac_key             bytea not null default decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'),
    keys_removed_before timestamptz,
    unique (created_by, open_cmid)
);

create table posthorn.memberships (
    conv_id   text collate "C" not null references posthorn.conversations,
    user_id   text collate "C" not null references posthorn.users,
    from_seq  bigint not null check (from_seq >= 1),
    to_seq    bigint check (to_seq >= from_seq),
    role      text collate "C" not null default 'member' check (role in ('owner', 'admin', 'member')),
    sees_from bigint not null check (sees_from between 1 and from_seq),
    primary key (conv_id, user_id, from_seq)
);
create index memberships_user on posthorn.memberships (user_id, conv_id);
create unique index memberships_present on posthorn.memberships (conv_id, user_id) include (role) where to_seq is null;

-- No foreign keys here: the function that inserts holds the conversation's row lock and has found the sender among its
-- members, and each check would cost a statement per row on the hot path (BenchmarkForeignKeys measures it).
create table posthorn.events (
    conv_id       text collate "C" not null,
    seq           bigint not null check (seq between 1 and 9007199254740991),
    kind          text collate "C" not null,
    mid           uuid not null,
    sender        text collate "C" not null, -- '' stands for a server key
    device_id     bigint,                    -- null: sent for the sender over HTTP or SQL
    cmid          text collate "C" not null,
    content_mac   bytea not null,
    body          text,
    data          text,   -- a JSON object as it came; jsonb would rewrite numbers
    reply_to      bigint,
    target        bigint,
    target_sender text collate "C",
    users         text[], -- open, join, leave: whom it concerns
    msg_no        bigint not null,
    at            timestamptz(3) not null,
    primary key (conv_id, seq),
    unique (conv_id, sender, cmid)
);
create index events_own on posthorn.events (conv_id, sender, seq) where device_id is not null;
create unique index events_recall on posthorn.events (conv_id, target) where kind = 'recall';

-- The log tail: one row per sending transaction. users names who came in, so that every gateway reads those events.
create table posthorn.event_commits (
    tx        xid8 not null default pg_current_xact_id(),
    origin    text collate "C" not null,
    batch     bigint not null,
    convs     text[] not null,
    first_seq bigint[] not null,
    last_seq  bigint[] not null,
    users     text[],
    at        timestamptz not null default clock_timestamp()
);
create index event_commits_tx on posthorn.event_commits (tx);

-- Durable facts that are not events, read by the same tail. A signal only points at state that a table holds.
create table posthorn.signals (
    tx      xid8 not null default pg_current_xact_id(),
    kind    text collate "C" not null,
    key     text collate "C" not null,
    payload text,
    at      timestamptz not null default clock_timestamp()
);
create index signals_tx on posthorn.signals (tx);

-- Only key columns are indexed and pages keep room, so that every move of a cursor is a HOT update.
create table posthorn.device_cursors (
    conv_id       text collate "C" not null references posthorn.conversations,
    device_id     bigint not null references posthorn.devices,
    epoch         bigint not null,
    install_epoch bigint not null,
    start_seq     bigint not null default 0 check (start_seq >= 0),
    delivered_seq bigint not null default 0 check (delivered_seq between 0 and 9007199254740991),
    updated_at    timestamptz not null default clock_timestamp(),
    primary key (conv_id, device_id)
) with (fillfactor = 70);
create index device_cursors_device on posthorn.device_cursors (device_id);

create table posthorn.read_cursors (
    conv_id  text collate "C" not null references posthorn.conversations,
    user_id  text collate "C" not null references posthorn.users,
    epoch    bigint not null,
    read_seq bigint not null default 0 check (read_seq between 0 and 9007199254740991),
    rv       bigint not null default 0,
    primary key (conv_id, user_id)
) with (fillfactor = 70);
create index read_cursors_user on posthorn.read_cursors (user_id);

create table posthorn.gateways (
    gateway_id   text collate "C" primary key,
    started_at   timestamptz not null default clock_timestamp(),
    heartbeat_at timestamptz not null default clock_timestamp(),
    lease_until  timestamptz not null default clock_timestamp(),
    lane_batches jsonb not null default '{}' -- newest acknowledged batch per lane
);

create table posthorn.device_routes (
    device_id  bigint primary key references posthorn.devices,
    gateway_id text collate "C" not null,
    connection bigint not null,
    generation bigint not null
);

create table posthorn.consumers (
    name        text collate "C" primary key,
    position    text,
    lease_until timestamptz
);
