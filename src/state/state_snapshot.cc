// The state as bytes, and back.
#include <utility>

#include "state/records_fields.h"
#include "state/state.h"

namespace muster::state {

// Where snapshots once had the keys of submissions: by "user\nkey#number#digest".
using OldKeys = std::map<std::string, JobNumber>;

template <typename V>
void Fields(V& v, State& s) {
  v("revision", s.revision_)("next_job", s.next_job_)("arrays", s.arrays_)("nodes", s.nodes_)(
      "queues", s.queues_)("past_use", s.past_use_)("past_use_ms", s.past_use_ms_)(
      "ended_jobs", s.ended_jobs_)("last_ms", s.last_ms_)("users", s.users_)("tokens", s.tokens_)(
      "queue_records", s.queue_records_)("requests", s.requests_)("policies", s.policies_)(
      "reservations", s.reservations_);
}

// Jobs come one by one behind the rest; the tasks of an array take their spec from the array.
std::string State::Encode() const {
  model::Packer out;
  out.Put(*this);
  out.Put(std::vector<JobNumber>(ended_.begin(), ended_.end()));
  out.Put(OldKeys{});
  out.Put(std::vector<std::string>{});
  out.Put(jobs_.size());
  for (const auto& [id, job] : jobs_) {
    const bool shared = job.array != 0 && arrays_.at(job.array).spec == job.spec;
    out.Put(shared);
    if (!shared) {
      out.Put(job);
      continue;
    }
    JobRecord bare = job;
    bare.spec = nullptr;
    out.Put(bare);
  }
  return std::move(out.out);
}

Result<State> State::Decode(std::string_view bytes) {
  model::Unpacker in(bytes);
  State state;
  in.Get(state);
  std::vector<JobNumber> ended;
  OldKeys old_keys;
  std::vector<std::string> old_order;
  std::size_t count = 0;
  in.Get(ended);
  in.Get(old_keys);
  in.Get(old_order);
  in.Get(count);
  state.ended_.assign(ended.begin(), ended.end());
  for (const auto& text : old_order) {
    const auto line = text.find('\n');
    const auto job = old_keys.find(text);
    if (line == std::string::npos || job == old_keys.end()) continue;
    state.requests_.AddSubmitted(text.substr(0, line), text.substr(line + 1), job->second);
  }
  for (std::size_t i = 0; i < count && !in.bad(); ++i) {
    bool shared = false;
    JobRecord job;
    in.Get(shared);
    in.Get(job);
    if (shared) {
      const auto array = state.arrays_.find(job.array);
      if (array != state.arrays_.end()) job.spec = array->second.spec;
    }
    if (job.spec == nullptr) break;
    state.jobs_.emplace_hint(state.jobs_.end(), job.id, std::move(job));
  }
  if (in.bad() || state.jobs_.size() != count) {
    return Fail(ErrorCode::kInvalid, "the snapshot is cut off or damaged");
  }
  state.Index();
  return state;
}

}  // namespace muster::state
