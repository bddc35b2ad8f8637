// The state as bytes, and back.
#include <utility>

#include "state/records_fields.h"
#include "state/state.h"

namespace muster::state {

template <typename V>
void Fields(V& v, State& s) {
  v("revision", s.revision_)("next_job", s.next_job_)("arrays", s.arrays_)("nodes", s.nodes_)(
      "queues", s.queues_)("past_use", s.past_use_)("past_use_ms", s.past_use_ms_)(
      "ended_jobs", s.ended_jobs_)("last_ms", s.last_ms_)("users", s.users_)("tokens", s.tokens_)(
      "queue_records", s.queue_records_);
}

// Jobs come one by one behind the rest; the tasks of an array take their spec from the array.
std::string State::Encode() const {
  model::Packer out;
  out.Put(*this);
  out.Put(std::vector<JobNumber>(ended_.begin(), ended_.end()));
  out.Put(keys_);
  out.Put(std::vector<std::string>(key_order_.begin(), key_order_.end()));
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
  std::vector<std::string> key_order;
  std::size_t count = 0;
  in.Get(ended);
  in.Get(state.keys_);
  in.Get(key_order);
  in.Get(count);
  state.ended_.assign(ended.begin(), ended.end());
  state.key_order_.assign(key_order.begin(), key_order.end());
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
