#include "control/outlook.h"

#include <algorithm>

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

std::vector<WaitForecast::Running> RunningIn(const engine::Cluster& cluster, std::int64_t now_ms) {
  std::vector<WaitForecast::Running> running;
  for (engine::QueueId q = 1; q < cluster.queues().size(); ++q) {
    for (const auto id : cluster.RunningIn(q)) {
      std::int64_t milli = 0, since = now_ms;
      for (const auto& worker : cluster.job(id).workers) {
        if (!worker.place.Holds()) continue;
        milli += worker.place.charge_milli;
        since = std::min(since, worker.started_ms);
      }
      const auto gpus = GpusOf(milli);
      running.push_back({WaitForecast::KindOf(cluster.queues().spec(q).name, gpus),
                         Seconds(now_ms - since), gpus});
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

// A job that is not there yet asks for GPUs beside those that all others wait for.
WaitForecast::Question QuestionOf(const engine::Cluster& cluster, const model::Job& spec,
                                  std::optional<model::JobNumber> known, std::int64_t now_ms) {
  WaitForecast::Question question;
  question.job = known.value_or(0);
  question.queue = spec.queue;
  question.gpus = GpusOf(model::AskedGpuMilli(spec));
  const auto& all = cluster.queues()[0];
  std::int64_t milli = all.request[engine::kGpuDim] - all.held[engine::kGpuDim];
  if (!known) milli += question.gpus * kMilli;
  for (engine::TypeId type = 0; type < cluster.nodes().type_count(); ++type) {
    milli -= cluster.nodes().FreeMilli(type, engine::Mode::kFree);
  }
  question.missing_gpus = std::max<std::int64_t>(1, milli / kMilli);
  const auto queue = cluster.queues().Find(spec.queue);
  if (queue == engine::kNone) return question;
  if (const auto* waiting = cluster.waiting().PrioritiesIn(queue); waiting != nullptr) {
    for (const auto& [priority, count] : *waiting) question.ahead += count;
  }
  if (known && question.ahead > 0) --question.ahead;
  std::int64_t oldest = now_ms;
  for (const auto& head : cluster.waiting().OfQueue(queue)) {
    if (head.job != engine::kNone) oldest = std::min(oldest, head.key.submitted_ms);
  }
  question.longest_wait_s = Seconds(now_ms - oldest);
  return question;
}

}  // namespace

void Outlook::Ended(const state::JobRecord& job) {
  forecast_.Forget(job.id);
  if (!job.ending || job.started_ms == 0 || job.ending->end == model::End::kCancelled) return;
  const auto ran =
      job.ran_ms + (job.running_since_ms > 0 ? job.ending->at_ms - job.running_since_ms : 0);
  runtimes_.Add(engine::KindOf(*job.spec, job.user), ran);
  forecast_.Ended(WaitForecast::KindOf(job.spec->queue, GpusOf(model::AskedGpuMilli(*job.spec))),
                  Seconds(ran));
}

void Outlook::Started(model::JobNumber job, std::int64_t now_ms) {
  forecast_.Started(Seconds(now_ms), job);
}

void Outlook::Cycled(const state::State& state, const sim::EngineView& engine,
                     std::int64_t now_ms) {
  std::vector<WaitForecast::Running> running;
  std::size_t asked = 0;
  for (const auto id : fresh_) {
    const auto* job = state.Find(id);
    if (job == nullptr || job->Holds() || !engine.Has(id)) continue;
    if (asked++ == kAskedPerCycle) break;
    if (asked == 1) running = RunningIn(engine.cluster(), now_ms);
    forecast_.Ask(Seconds(now_ms), QuestionOf(engine.cluster(), *job->spec, id, now_ms), running);
  }
  fresh_.clear();
}

std::optional<engine::RuntimeGuess> Outlook::Runtime(const model::Job& spec,
                                                     const std::string& user) const {
  return runtimes_.Guess(engine::KindOf(spec, user));
}

Outlook::Start Outlook::StartOf(const model::Job& spec, std::optional<model::JobNumber> known,
                                const sim::EngineView& engine, std::int64_t now_ms) const {
  const auto& cluster = engine.cluster();
  const auto answer = forecast_.Look(Seconds(now_ms), QuestionOf(cluster, spec, known, now_ms),
                                     RunningIn(cluster, now_ms));
  Start start;
  start.waits = static_cast<std::int64_t>(forecast_.waits());
  const bool few = start.waits < kFewWaits;
  start.likely_ms = Ms(few ? answer.free_s : answer.likely_s);
  if (!few) start.by_ms = Ms(answer.by_s);
  if (known && engine.reserved() && engine.reserved()->first == *known) {
    start.reserved = true;
    start.likely_ms = std::max<std::int64_t>(0, engine.reserved()->second - now_ms);
    if (!few) start.by_ms = std::max(start.by_ms, start.likely_ms);
  }
  return start;
}

model::DocNode StartView(const Outlook::Start& start, const engine::Cluster& cluster,
                         const engine::Explanation& why, std::int64_t now_ms) {
  model::DocNode node = model::MapNode();
  const bool never = why.gate == model::Gate::kNeverFits || why.gate == model::Gate::kTopology ||
                     why.gate == model::Gate::kMinimum || why.beyond_limit;
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
