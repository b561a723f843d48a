import { createHash } from 'node:crypto'

/** A name in the title of each of the server's processes, so that they can be recognised without privileges. */
export const clusterName = (cluster: string): string =>
  `muster-${createHash('sha256').update(cluster).digest('hex').slice(0, 12)}`

/** Settings are given on the command line, so that a new version's settings hold for existing clusters too. */
export function serverArguments(cluster: string, port: number): string[] {
  const settings: Record<string, string | number> = {
    cluster_name: clusterName(cluster),
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    max_connections: 200,
    TimeZone: 'UTC',

    // Acknowledged writes are on the disk. fsync, on by default, is not set here: a server for tests may switch it off.
    synchronous_commit: 'on',

    // These sizes suit a machine of 2 cores and 2 GB or more that the server shares with Muster.
    shared_buffers: '128MB',
    effective_cache_size: '512MB',
    work_mem: '8MB',
    maintenance_work_mem: '64MB',
    random_page_cost: 1.1,
    jit: 'off',
    // Queries are short, and parallel ones need /dev/shm, of which a container has 64 MB.
    max_parallel_workers_per_gather: 0,
    max_parallel_maintenance_workers: 0,

    // Nobody replicates from this server. The size bounds recovery after a crash to seconds.
    max_wal_senders: 0,
    wal_buffers: '16MB',
    max_wal_size: '1GB',
    checkpoint_completion_target: 0.9,

    // Queue tables turn over quickly. Each table sets the share of its rows that may be dead (migration 0014).
    autovacuum_naptime: '15s',

    log_destination: 'stderr',
    logging_collector: 'off',
    log_checkpoints: 'off',
    // Details quote rows, which may be secret.
    log_error_verbosity: 'terse',
    log_timezone: 'UTC',
  }
  return ['-D', cluster, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
}
