-- A session of a device. p_install null: the next install. Without p_resume the install is taken at its word; with it a
-- nonce that is neither the newest nor the one before it shows a cloned or restored store, which gets a new install.
create function posthorn.hello(
    p_user text, p_device text, p_install bigint, p_resume text,
    out code text, out device_id bigint, out install_epoch bigint, out resume uuid, out epoch bigint
) language plpgsql as $$
declare
    v_dev posthorn.devices;
    v_prev uuid;
begin
    code := '';
    select s.epoch into epoch from posthorn.sequence_space s;
    select * into v_dev from posthorn.devices d where d.user_id = p_user and d.device_name = p_device for no key update;
    if not found then
        insert into posthorn.users (user_id) values (p_user) on conflict do nothing;
        insert into posthorn.devices (user_id, device_name) values (p_user, p_device) on conflict do nothing;
        select * into v_dev from posthorn.devices d where d.user_id = p_user and d.device_name = p_device for no key update;
    end if;
    if v_dev.revoked_at is not null then code := 'UNAUTHENTICATED'; return; end if;

    device_id := v_dev.device_id;
    if p_install is null then
        install_epoch := v_dev.install_epoch + 1;
    elsif p_resume is null then
        if p_install < v_dev.install_epoch then code := 'STALE_INSTALL'; return; end if;
        install_epoch := p_install;
    elsif p_install = v_dev.install_epoch and p_resume in (v_dev.resume::text, v_dev.resume_prev::text) then
        install_epoch := p_install;
        v_prev := p_resume::uuid;
    elsif p_install > v_dev.install_epoch then
        -- A store that is ahead of the database: the database was rewound, the install goes on as told.
        install_epoch := p_install;
    else
        install_epoch := v_dev.install_epoch + 1;
    end if;
    resume := gen_random_uuid();
    update posthorn.devices d
       set install_epoch = hello.install_epoch, resume = hello.resume, resume_prev = v_prev, last_seen_at = clock_timestamp()
     where d.device_id = hello.device_id;
end
$$;

-- A batch of acks, the largest of each (device, conversation). codes[i] is '' or an error code; seqs[i] the stored cursor,
-- or with CURSOR_AHEAD the visible head. In key order, so that two gateways never deadlock; nothing is written where the
-- cursor would not move.
create function posthorn.ack_batch(p_conv text[], p_device bigint[], p_install bigint[], p_seq bigint[],
    out codes text[], out seqs bigint[]) language sql volatile as $$
    with asked as (
        select i.*, d.user_id, s.epoch, p.conv_id is null as stranger,
               d.install_epoch <> i.install as stale, d.device_id is null or d.revoked_at is not null as revoked,
               posthorn.visible_head(i.conv, c.kind, d.user_id, p.to_seq, p.role, posthorn.head(i.conv)) as vhead,
               dc.epoch as has_epoch, dc.install_epoch as has_install, dc.delivered_seq as has
          from unnest(p_conv, p_device, p_install, p_seq) with ordinality as i (conv, device, install, seq, n)
          cross join posthorn.sequence_space s
          left join posthorn.devices d on d.device_id = i.device
          left join posthorn.conversations c on c.conv_id = i.conv
          left join lateral (select m.conv_id, m.to_seq, m.role from posthorn.memberships m
                where m.conv_id = i.conv and m.user_id = d.user_id order by m.from_seq desc limit 1) p on true
          left join posthorn.device_cursors dc on dc.conv_id = i.conv and dc.device_id = i.device
    ), judged as (
        select a.*, case when a.revoked then 'UNAUTHENTICATED' when a.stale then 'STALE_INSTALL' when a.stranger then 'NOT_MEMBER'
                         when a.seq > a.vhead then 'CURSOR_AHEAD' else '' end as code,
               (a.has_epoch, a.has_install) is not distinct from (a.epoch, a.install) and a.has >= a.seq as held
          from asked a
    ), moved as (
        insert into posthorn.device_cursors as dc (conv_id, device_id, epoch, install_epoch, delivered_seq)
        select j.conv, j.device, j.epoch, j.install, j.seq from judged j where j.code = '' and not j.held order by j.conv, j.device
        on conflict (conv_id, device_id) do update
           set start_seq = case when dc.install_epoch = excluded.install_epoch then dc.start_seq else 0 end,
               delivered_seq = case when (dc.epoch, dc.install_epoch) = (excluded.epoch, excluded.install_epoch)
                                    then greatest(dc.delivered_seq, excluded.delivered_seq) else excluded.delivered_seq end,
               epoch = excluded.epoch, install_epoch = excluded.install_epoch, updated_at = clock_timestamp()
         where dc.install_epoch <= excluded.install_epoch
        returning dc.conv_id, dc.device_id, dc.delivered_seq
    )
    select array_agg(j.code order by j.n),
           array_agg(case when j.code = 'CURSOR_AHEAD' then j.vhead
                          else coalesce(m.delivered_seq, greatest(j.has, j.seq)) end order by j.n)
      from judged j left join moved m on m.conv_id = j.conv and m.device_id = j.device
$$;

-- The start mark of a device new to a conversation: it moves up until the first ack of the install, never down. No row:
-- a newer install of the device has a cursor here.
create function posthorn.mark_start(p_conv text, p_device bigint, p_install bigint, p_start bigint,
    out start_seq bigint, out delivered_seq bigint) returns setof record language sql volatile as $$
    insert into posthorn.device_cursors as dc (conv_id, device_id, epoch, install_epoch, start_seq)
    select p_conv, p_device, s.epoch, p_install, p_start from posthorn.sequence_space s
    on conflict (conv_id, device_id) do update
       set start_seq = case when dc.install_epoch < excluded.install_epoch then excluded.start_seq
                            when dc.delivered_seq > 0 then dc.start_seq
                            else greatest(dc.start_seq, excluded.start_seq) end,
           delivered_seq = case when dc.install_epoch < excluded.install_epoch or dc.epoch <> excluded.epoch then 0 else dc.delivered_seq end,
           epoch = excluded.epoch, install_epoch = excluded.install_epoch, updated_at = clock_timestamp()
     where dc.install_epoch <= excluded.install_epoch
    returning dc.start_seq, dc.delivered_seq
$$;

-- How many messages stand in (p_from, p_to]: two index probes, however many they are.
create function posthorn.messages_between(p_conv text, p_from bigint, p_to bigint) returns bigint language sql stable as $$
    select coalesce((select e.msg_no from posthorn.events e where e.conv_id = p_conv and e.seq <= p_to order by e.seq desc limit 1), 0)
         - coalesce((select e.msg_no from posthorn.events e where e.conv_id = p_conv and e.seq <= p_from order by e.seq desc limit 1), 0)
$$;
