-- Makes the role and the database, in single-user mode, where each line is one command.
-- The role is ordinary: what the server may do, an operator can read off its grants.
CREATE ROLE posthorn LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD ${role_password}
CREATE DATABASE posthorn OWNER posthorn
-- So that an operator's `select * from device_cursors` finds the table, by whichever role.
ALTER ROLE posthorn SET search_path = posthorn, public
ALTER DATABASE posthorn SET search_path = posthorn, public
-- Applications that send in their own transactions, and people who read, are granted these; see docs/sql.md.
CREATE ROLE posthorn_app NOLOGIN
CREATE ROLE posthorn_read NOLOGIN
