#include "control/outlook.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "base/units.h"
#include "control/view_parts.h"

namespace muster::control {
namespace {

using engine::WaitForecast;

constexpr std::size_t kAskedPerCycle = 4;
constexpr std::int64_t kFewWaits = 10;       // teach too little
constexpr std::size_t kMostRunning = 2'000;  // of more, some stand for all

double Seconds(std::int64_t ms) { return static_cast<double>(ms) / 1000; }
std::int64_t Ms(double seconds) { return static_cast<std::int64_t>(seconds * 1000); }

std::int64_t GpusOf(std::int64_t milli) { return std::max<std::int64_t>(1, milli / kMilli); }

// The GPU types that count for a job, by their numbers in the cluster.
class Types {
 public:
  Types(const engine::Cluster& cluster, const model::Job& spec) : cluster_(cluster) {
    std::set<std::string> names;
    for (const auto& role : spec.roles) {
      if (role.request.gpu.kind == model::GpuKind::kNone) continue;
      if (role.gpu_types.empty()) return;
      names.insert(role.gpu_types.begin(), role.gpu_types.end());
    }
    if (names.empty()) return;
    counts_.emplace(cluster.nodes().type_count(), false);
    for (const auto& name : names) {
      line_ += '\n' + name;
      if (const auto type = cluster.nodes().FindType(name); type != engine::kNone) {
        (*counts_)[type] = true;
      }
    }
  }

  bool all() const { return !counts_; }
  const std::string& line() const { return line_; }  // empty: all
  bool Has(engine::TypeId type) const {
    return !counts_ || (type < counts_->size() && (*counts_)[type]);
  }
  // What a job of the class certainly asks for of them, in thousandths.
  std::int64_t AskedBy(engine::ClassId job_class) const {
    std::int64_t milli = 0;
    for (const auto& need : cluster_.job_class(job_class).needs) {
      const auto& shape = cluster_.shapes()[need.shape];
      const auto& gpu = shape.spec.request.gpu;
      bool takes = false;
      for (engine::TypeId type = 0; type < shape.type_rank.size(); ++type) {
        takes |= shape.type_rank[type] != engine::kNone && Has(type);
      }
      const auto each = gpu.kind == model::GpuKind::kShare ? gpu.share_milli : kMilli;
      if (takes) milli += static_cast<std::int64_t>(need.count) * gpu.devices * each;
    }
    return milli;
  }

 private:
  const engine::Cluster& cluster_;
  std::optional<std::vector<bool>> counts_;  // none: all of them
  std::string line_;
};

// From now, if it takes as long as is known of it; who runs for longer may end at any time.
double EndsIn(const engine::Cluster& cluster, engine::JobId id, std::int64_t since_ms,
              std::int64_t now_ms) {
  const auto& job = cluster.job(id);
  const auto end_ms = since_ms + job.expected_ms;
  return job.expected_ms < 0 || end_ms < now_ms ? -1 : Seconds(end_ms - now_ms);
}

// Of each job the GPUs of those types that it holds.
std::vector<WaitForecast::Running> RunningIn(const engine::Cluster& cluster, const Types& types,
                                             std::int64_t now_ms) {
  std::vector<WaitForecast::Running> running;
  for (engine::QueueId q = 1; q < cluster.queues().size(); ++q) {
    for (const auto id : cluster.RunningIn(q)) {
      std::int64_t milli = 0, counted = 0, since = now_ms;
      engine::TypeId type = engine::kNone;
      for (const auto& worker : cluster.job(id).workers) {
        if (!worker.place.Holds()) continue;
        type = cluster.nodes().bank(worker.place.bank).type;
        milli += worker.place.charge_milli;
        counted += types.Has(type) ? worker.place.charge_milli : 0;
        since = std::min(since, worker.started_ms);
      }
      if (!types.all() && counted == 0) continue;
      const auto name = type == engine::kNone ? std::string() : cluster.nodes().type_name(type);
      running.push_back({WaitForecast::KindOf(cluster.queues().spec(q).name, GpusOf(milli), name),
                         Seconds(now_ms - since), GpusOf(counted),
                         EndsIn(cluster, id, since, now_ms)});
    }
  }
  const auto step = running.size() / kMostRunning + 1;
  if (step == 1) return running;
  std::vector<WaitForecast::Running> some;
  some.reserve(kMostRunning + 1);
  for (std::size_t i = 0; i < running.size(); i += step) {
    running[i].gpus *= static_cast<std::int64_t>(step);
    some.push_back(std::move(running[i]));
  }
  return some;
}

// What all who wait ask for beyond what they hold.
std::int64_t WaitedFor(const engine::Cluster& cluster, const Types& types) {
  const auto& all = cluster.queues()[0];
  if (types.all()) return all.request[engine::kGpuDim] - all.held[engine::kGpuDim];
  std::int64_t milli = 0;
  for (engine::ClassId c = 0; c < cluster.class_count(); ++c) {
    if (!cluster.waiting().AnyOf(c)) continue;
    std::int64_t jobs = 0;
    for (const auto& head : cluster.waiting().OfClass(c)) {
      jobs += std::ssize(cluster.waiting().bucket(head.bucket).waiters());
    }
    milli += jobs * types.AskedBy(c);
  }
  return milli;
}

// A job that is not there yet asks for GPUs beside those that all others wait for.
WaitForecast::Question QuestionOf(const engine::Cluster& cluster, const model::Job& spec,
                                  const Types& types, std::optional<model::JobNumber> known,
                                  std::int64_t now_ms) {
  WaitForecast::Question question;
  question.job = known.value_or(0);
  question.line = spec.queue + types.line();
  question.gpus = GpusOf(model::AskedGpuMilli(spec));
  std::int64_t milli = WaitedFor(cluster, types);
  if (!known) milli += question.gpus * kMilli;
  for (engine::TypeId type = 0; type < cluster.nodes().type_count(); ++type) {
    if (types.Has(type)) milli -= cluster.nodes().FreeMilli(type, engine::Mode::kFree);
  }
  question.missing_gpus = milli <= 0 ? 0 : std::max<std::int64_t>(1, milli / kMilli);
  const auto queue = cluster.queues().Find(spec.queue);
  if (queue == engine::kNone) return question;
  std::int64_t oldest = now_ms;
  for (const auto& head : cluster.waiting().OfQueue(queue)) {
    if (head.job == engine::kNone || (!types.all() && types.AskedBy(head.job_class) == 0)) continue;
    question.ahead += std::ssize(cluster.waiting().bucket(head.bucket).waiters());
    oldest = std::min(oldest, head.key.submitted_ms);
  }
  if (known && question.ahead > 0) --question.ahead;
  question.longest_wait_s = Seconds(now_ms - oldest);
  return question;
}

// The type of the GPUs that it had last; empty: not known any more.
std::string TypeOf(const state::JobRecord& job, const state::State& state) {
  for (const auto& worker : job.workers) {
    const auto node = state.nodes().find(worker.node);
    const auto gpu = static_cast<std::size_t>(std::countr_zero(worker.devices));
    if (node == state.nodes().end() || gpu >= node->second.node.gpus.size()) continue;
    return node->second.node.gpus[gpu].type;
  }
  return {};
}

}  // namespace

void Outlook::Ended(const state::JobRecord& job, const state::State& state) {
  forecast_.Forget(job.id);
  if (!job.ending || job.started_ms == 0 || job.ending->end == model::End::kCancelled) return;
  const auto ran =
      job.ran_ms + (job.running_since_ms > 0 ? job.ending->at_ms - job.running_since_ms : 0);
  runtimes_.Add(engine::KindOf(*job.spec, job.user), ran, {job.expected_ms, 0, job.expected_from});
  const auto gpus = GpusOf(model::AskedGpuMilli(*job.spec));
  forecast_.Ended(WaitForecast::KindOf(job.spec->queue, gpus, TypeOf(job, state)), Seconds(ran));
}

void Outlook::Started(model::JobNumber job, std::int64_t now_ms) {
  forecast_.Started(Seconds(now_ms), job);
}

void Outlook::Cycled(const state::State& state, const sim::EngineView& engine,
                     std::int64_t now_ms) {
  std::map<std::string, std::vector<WaitForecast::Running>> running;  // by GPU types
  std::size_t asked = 0;
  for (const auto id : fresh_) {
    const auto* job = state.Find(id);
    if (job == nullptr || job->Holds() || !engine.Has(id)) continue;
    if (asked++ == kAskedPerCycle) break;
    const auto& cluster = engine.cluster();
    const Types types(cluster, *job->spec);
    const auto [known, added] = running.try_emplace(types.line());
    if (added) known->second = RunningIn(cluster, types, now_ms);
    forecast_.Ask(Seconds(now_ms), QuestionOf(cluster, *job->spec, types, id, now_ms),
                  known->second);
  }
  fresh_.clear();
}

std::optional<engine::RuntimeGuess> Outlook::Runtime(const model::Job& spec,
                                                     const std::string& user) const {
  return runtimes_.Guess(engine::KindOf(spec, user));
}

std::optional<engine::RuntimeError> Outlook::RuntimeError(const state::JobRecord& job) const {
  return runtimes_.ErrorOf(engine::KindOf(*job.spec, job.user), job.expected_from);
}

Outlook::Start Outlook::StartOf(const model::Job& spec, std::optional<model::JobNumber> known,
                                const sim::EngineView& engine, std::int64_t now_ms) const {
  const auto& cluster = engine.cluster();
  const Types types(cluster, spec);
  const auto answer =
      forecast_.Look(Seconds(now_ms), QuestionOf(cluster, spec, types, known, now_ms),
                     RunningIn(cluster, types, now_ms));
  Start start;
  start.waits = static_cast<std::int64_t>(forecast_.waits());
  const bool few = start.waits < kFewWaits;
  start.likely_ms = Ms(few ? answer.served_s : answer.likely_s);
  if (!few) start.by_ms = Ms(answer.by_s);
  if (const auto from_ms = known ? engine.ReservedFrom(*known) : std::nullopt) {
    start.reserved = true;
    start.likely_ms = std::max<std::int64_t>(0, *from_ms - now_ms);
    if (!few) start.by_ms = std::max(start.by_ms, start.likely_ms);
  }
  return start;
}

model::DocNode StartView(const Outlook::Start& start, const engine::Cluster& cluster,
                         const engine::Explanation& why, std::int64_t now_ms) {
  model::DocNode node = model::MapNode();
  const bool never = why.gate == model::Gate::kNeverFits || why.gate == model::Gate::kTopology ||
                     why.gate == model::Gate::kMinimum || why.beyond;
  if (never || !why.out_of_service.empty()) {
    Put(node, "never", model::TextNode(engine::Sentence(cluster, why)));
    return node;
  }
  Put(node, "likely_at", TimeNode(now_ms + start.likely_ms));
  Put(node, "likely_ms", model::NumberNode(start.likely_ms));
  if (start.by_ms >= 0) {
    Put(node, "by_at", TimeNode(now_ms + start.by_ms));
    Put(node, "by_ms", model::NumberNode(start.by_ms));
    Put(node, "confidence_pct", model::NumberNode(90));
  }
  Put(node, "waits", model::NumberNode(start.waits));
  Put(node, "reserved", model::BoolNode(start.reserved));
  return node;
}

}  // namespace muster::control
