-- The project of each name that an app module has used: a module keeps its project when that project is renamed, and
-- another project of the same name does not take its place. A project that was removed leaves its name without one, so
-- that the next start makes it anew.
create table app_projects (
  name text primary key,
  project_id uuid references projects (id) on delete set null
);
create index app_projects_project on app_projects (project_id);
