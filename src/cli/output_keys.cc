#include "cli/output_keys.h"

#include <sstream>

namespace muster::cli {
namespace {

struct Entry {
  std::string_view verbs;  // with commas between
  std::string_view keys;   // a line each: path, then @Schema or what it is
};

constexpr Entry kEntries[] = {
    {"submit,clone", R"(jobs[].id of the job; of a dry run the one it would have
jobs[].name
jobs[].queue
jobs[].tasks of an array: how many
jobs[].dry_run true: nothing was changed
dry_run likewise)"},
    {"run", R"(. @Job as it is at its end; with --detach, --dry-run or --array as `submit` prints
jobs[].id
jobs[].name
jobs[].queue
jobs[].tasks
jobs[].dry_run
dry_run)"},
    {"validate", R"(files[].file as it was named
files[].kind job, queues, cluster, mixed, policy or unknown
files[].valid
files[].problems[].line 0: not about a line
files[].problems[].column
files[].problems[].severity error or warning
files[].problems[].message
files[].problems[].allowed what may stand there)"},
    {"plan", ". @Plan"},
    {"ps", R"(jobs[] @Job
next there are more: the cursor of the API
revision a watch from there on misses nothing)"},
    {"describe", ". @Job"},
    {"why", R"(. @Explanation
gate which rule keeps it from starting
workers_needed
fit_now workers that fit now
fit_if_preemptible_work_left workers that would fit then
fit_on_empty_cluster
needs_nodes_out_of_service[] nodes without which it cannot start
nodes_by_filter.* how many nodes lack that
nearest_fit.node
nearest_fit.missing
nearest_fit.gpus_missing
share.quota GPUs
share.held
share.fair_share
jobs_ahead
held_by[].queue
held_by[].gpus
held_by[].right why it may keep them
kept.for with the gate `reserved`: who is to have the room
kept.from
kept.to
displaced[].job with the gate `promised`: who is making room
displaced[].name
displaced[].user
displaced[].what
displaced[].workers
displaced[].rule
estimate.likely_at
estimate.likely_ms from now
estimate.by_at nine times out of ten
estimate.by_ms
estimate.confidence_pct
estimate.waits that it was learned from
estimate.reserved room is kept for it from the likely time on
estimate.never why, and then nothing else
would_start_it[] each alone
virtual
simulated)"},
    {"logs", R"(rank of the worker; one such object a line
stream out or err
line
more true: the line goes on in the next object)"},
    {"events", "events[] @Event"},
    {"top", R"(revision
version of the daemon
nodes.total
nodes.ready
gpus[].type
gpus[].held
gpus[].free
gpus[].total
gpus[].virtual
jobs[] @Job
phases.* how many jobs)"},
    {"wait", "jobs[] @Job in the order in which they were named"},
    {"cancel,suspend,resume,requeue,hold,release,checkpoint,scale,priority", "jobs[] @Acted"},
    {"node cordon,node drain,node uncordon", ". @Acted"},
    {"nodes", ". @Nodes"},
    {"gpus", R"(. @Gpus
levels @Topology with --topology
nodes @Topology with --topology
name
id)"},
    {"pools", ". @Pools"},
    {"queue list", ". @Queues"},
    {"queue show", ". @Queue"},
    {"queue apply", R"(queues[].id
queues[].name
queues[].dry_run)"},
    {"queue edit", R"(. @Queue
id its name
dry_run)"},
    {"queue delete", ". @Acted"},
    {"policy show", ". @PolicyDetail"},
    {"policy list", ". @Policies"},
    {"policy apply,policy undo", ". @PolicyChange"},
    {"reservation list", ". @Reservations"},
    {"reservation create", R"(. @Reservation
dry_run)"},
    {"reservation delete", ". @Acted"},
    {"runs list", ". @Runs"},
    {"runs show", ". @RunDetail"},
    {"runs compare", R"(runs[] @RunDetail in the order in which they were named
differences[].key of the job file, with a dot between its words
differences[].values[] of each; empty: its file has none)"},
    {"runs export", R"(name
file that was written
points how many are in it)"},
    {"usage", ". @Usage"},
    {"decisions", ". @Decisions"},
    {"login,whoami", ". @WhoAmI"},
    {"logout,config use,config delete", R"(id its name
name
server
token set or none
ca
current whether it is the one that is meant from now on)"},
    {"init", R"(name
file that was written)"},
    {"token create,token show", ". @Token"},
    {"token list", ". @Tokens"},
    {"token revoke", "tokens[] @Acted"},
    {"user list", ". @Users"},
    {"user set,user remove", ". @Acted"},
    {"audit", ". @Audit"},
    {"config view", R"(settings[].name file, context, server, token (set or none) or ca
settings[].value
settings[].origin with --origins: where it comes from
contexts[].name
contexts[].server
contexts[].token set or none
contexts[].ca
contexts[].current)"},
    {"doctor", R"(checks[].name
checks[].result ok, warn or fail
checks[].said
checks[].advice empty: nothing is to be done)"},
    {"snapshot save", R"(name
file
bytes
revision the last one in it)"},
    {"snapshot past", R"(name
file
bytes
jobs how many are in it)"},
    {"snapshot replay", R"(events
cycles
decisions
same whether they were the same decisions
difference the first one that was not)"},
    {"sim scenarios", R"(passed how many
failed how many
results[].id
results[].passed
results[].rule of a .case file
results[].differences[]
results[].shares.* of a fair-share case
results[].rounds[].evicted[]
results[].rounds[].tasks.*.state
results[].rounds[].tasks.*.node)"},
    {"sim run", R"(policy
oracle true where the policy knows how long jobs take; else absent
seed
workload of the jobs and pollux sets
node_count of the jobs set
gpus_per_node
mean_wait_s of the jobs set, from submission to the first start
p99_wait_s
mean_jct_s of the jobs and pollux sets, from submission to the end
p99_jct_s
makespan_s when the last job ended
utilisation_pct of the jobs set: GPU-time used
preemptions of all jobs of the jobs set
estimates.waited with --estimates: jobs that had to wait
estimates.coverage_pct started within the bound that was given when they came
estimates.pinball_s mean loss of the bounds at 0.9
estimates.queue_pinball_s of the queue's own 0.9 quantile instead
estimates.runtimes jobs whose run time was guessed
estimates.runtime_factor by how much in the middle: 2 is twice or half as long
estimates.plain_factor of the middle run time of all jobs before instead
restarts of all jobs of the pollux set
policy_ms_p50 what a decision took
jobs[].name
jobs[].wait_s
jobs[].jct_s
gpu_allocation_pct of the openb set
fragmentation_pct
placed pods
failed pods
wall_s what the run took)"},
    {"sim compare", R"(runs[].* as of sim run)"},
    {"sim pooling", R"(workload
jobs
span_s the time in which jobs come
mean_demand_gpus that the jobs would keep busy all that time
gpus_per_node
queues[].name
queues[].jobs
queues[].largest_gpus of one job
queues[].p95_gpus percentile 95 of the queue's own demand
queues[].peak_gpus
sizes[].percentile of the demand; not with --node-count
sizes[].node_count
sizes[].division how the parts were chosen: percentile or work
sizes[].parts[].queue
sizes[].parts[].gpus
sizes[].ways[].name fixed, guaranteed, elastic or fixed-same-wait
sizes[].ways[].gpus
sizes[].ways[].utilisation_pct GPU time held while jobs came
sizes[].ways[].utilisation_to_end_pct until the last job has ended
sizes[].ways[].idle_while_waiting_pct GPU time free while a job waited and jobs came
sizes[].ways[].mean_wait_s to the first start
sizes[].ways[].median_wait_s
sizes[].ways[].p90_wait_s
sizes[].ways[].mean_jct_s from submission to the end
sizes[].ways[].makespan_s
sizes[].ways[].ended jobs, while jobs came
sizes[].ways[].jobs_per_gpu_week of those
sizes[].ways[].preemptions
sizes[].ways[].changes of size or place
sizes[].ways[].lost_gpu_h held without progress)"},
    {"sim generate", R"(jobs[].name
jobs[].user
jobs[].queue
jobs[].submit_s
jobs[].gpus
jobs[].duration_s)"},
    {"sim report", R"(name the folder
files[].file that was written, the page first
files[].bytes
files[].shows)"},
    {"policy diff", ". @SimulationResult"},
    {"bench engine", R"(shape
nodes
gpus
jobs
decisions
placed workers
cycles
settled
proven
wall_ms median of the runs
wall_ms_samples[]
first_cycle_ms
event_p50_ms
event_p99_ms
event_ms_samples[]
peak_rss_mb
machine
ratio of growth: 100,000 nodes against 1,000
sizes[].nodes
sizes[].gpus
sizes[].jobs
sizes[].decisions
sizes[].placed
sizes[].wall_ms
sizes[].us_per_decision
sizes[].peak_rss_mb)"},
    {"demo share", R"(script.* what is played: researchers, jobs, GPUs and the times assumed
runs[].sharing pool or fixed
runs[].story[].* what happens, in order
runs[].jobs[].* what became of each
runs[].stays[].* who held which GPU from when to when
runs[].measures.* utilisation, waits and losses)"},
    {"version", R"(version ours
daemon @Version null: it was not reached
unreachable why it was not reached)"}};

KeyDoc Read(const std::string& line) {
  KeyDoc doc;
  const auto space = line.find(' ');
  doc.path = line.substr(0, space);
  if (space == std::string::npos) return doc;
  doc.help = line.substr(space + 1);
  if (!doc.help.starts_with('@')) return doc;
  const auto end = doc.help.find(' ');
  doc.schema = doc.help.substr(1, end == std::string::npos ? end : end - 1);
  doc.help = end == std::string::npos ? "" : doc.help.substr(end + 1);
  return doc;
}

}  // namespace

std::vector<KeyDoc> KeysOf(std::string_view verb) {
  std::vector<KeyDoc> out;
  for (const auto& entry : kEntries) {
    std::istringstream verbs{std::string(entry.verbs)};
    bool meant = false;
    for (std::string one; std::getline(verbs, one, ',');) meant = meant || one == verb;
    if (!meant) continue;
    std::istringstream lines{std::string(entry.keys)};
    for (std::string line; std::getline(lines, line);) out.push_back(Read(line));
  }
  return out;
}

}  // namespace muster::cli
