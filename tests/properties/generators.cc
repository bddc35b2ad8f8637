#include "generators.h"

#include <cstdlib>
#include <ostream>
#include <string>
#include <string_view>

#include "base/units.h"

namespace muster::properties {
namespace {

constexpr std::uint64_t kSeed = 20'260'807;  // the same scenes in every run, unless RC_PARAMS says

// What `next(bound)` returns in [0, bound] becomes the fields, one after the other.
template <typename Draft, typename Next>
Draft Fill(const Next& next) {
  Draft draft;
  for (const auto& field : Fields<Draft>()) draft.*field.member = next(field.high);
  return draft;
}

template <typename Next>
EventDraft FillEvent(const Next& next) {
  auto event = Fill<EventDraft>(next);
  if (KindOf(event) == EventKind::kSubmit) event.job = Fill<JobDraft>(next);
  return event;
}

int Pick(int high) { return *rc::gen::inRange(0, high + 1); }

// The size of numbers and lists is ours to choose, not RapidCheck's.
template <typename T>
rc::Gen<T> FullRange(rc::Gen<T> gen) {
  return rc::gen::resize(rc::kNominalSize, std::move(gen));
}

template <typename T>
rc::Gen<std::vector<T>> UpTo(int count, rc::Gen<T> element) {
  return rc::gen::resize(count, rc::gen::container<std::vector<T>>(FullRange(std::move(element))));
}

template <typename T>
rc::Gen<std::vector<T>> OneUpTo(int count, rc::Gen<T> element) {
  return rc::gen::nonEmpty(UpTo(count, std::move(element)));
}

template <typename Draft>
rc::Gen<Draft> AnyDraft() {
  return rc::gen::exec([] { return Fill<Draft>(Pick); });
}

rc::Gen<EventDraft> AnyEvent() {
  return rc::gen::exec([] { return FillEvent(Pick); });
}

// A two-level tree at most; whether the quotas fit is for the property to arrange.
rc::Gen<QueueDraft> AnyQuotaQueue() {
  return rc::gen::exec([] {
    QueueDraft draft;
    draft.parent = *rc::gen::inRange(0, 3);
    draft.quota = *rc::gen::inRange(0, 5);
    draft.weight = *rc::gen::inRange(0, 3);
    draft.priority = *rc::gen::inRange(0, 4);
    return draft;
  });
}

rc::Gen<EventDraft> AnyQuotaEvent() {
  return rc::gen::exec([] {
    EventDraft draft;
    draft.kind = *rc::gen::inRange(0, 14);  // submit and finish
    draft.pick = *rc::gen::inRange(0, 16);
    draft.slow = *rc::gen::inRange(0, 3);
    draft.job.queue = *rc::gen::inRange(0, 8);
    draft.job.priority = *rc::gen::inRange(0, 4);
    return draft;
  });
}

rc::Gen<NodeDraft> AnyQuotaNode() {
  return rc::gen::exec([] {
    NodeDraft draft;
    draft.gpus = *rc::gen::inRange(0, 4);
    draft.type = *rc::gen::inRange(0, 3);
    draft.links = *rc::gen::inRange(0, 3);
    return draft;
  });
}

}  // namespace

rc::Gen<Scene> AnyScene(SceneSize size) {
  return rc::gen::build<Scene>(
      rc::gen::set(&Scene::policy, FullRange(rc::gen::inRange(0, kPolicies))),
      rc::gen::set(&Scene::nodes, OneUpTo(size.nodes, AnyDraft<NodeDraft>())),
      rc::gen::set(&Scene::queues, OneUpTo(size.queues, AnyDraft<QueueDraft>())),
      rc::gen::set(&Scene::events, UpTo(size.events, AnyEvent())));
}

rc::Gen<Scene> AnyQuotaScene() {
  return rc::gen::build<Scene>(
      rc::gen::set(&Scene::policy, FullRange(rc::gen::inRange(0, kThoroughPolicies))),
      rc::gen::set(&Scene::nodes, OneUpTo(4, AnyQuotaNode())),
      rc::gen::set(&Scene::queues, OneUpTo(5, AnyQuotaQueue())),
      rc::gen::set(&Scene::events, UpTo(40, AnyQuotaEvent())));
}

Scene DrawScene(Random& random, SceneSize size) {
  const auto next = [&random](int high) { return static_cast<int>(random.Between(0, high)); };
  Scene scene;
  scene.policy = next(kPolicies - 1);
  for (int i = 0; i < size.nodes; ++i) scene.nodes.push_back(Fill<NodeDraft>(next));
  for (int i = 0; i < size.queues; ++i) scene.queues.push_back(Fill<QueueDraft>(next));
  for (int i = 0; i < size.events; ++i) scene.events.push_back(FillEvent(next));
  return scene;
}

void showValue(const Scene& scene, std::ostream& out) { out << "\n" << Describe(scene); }

rc::detail::TestParams SceneParams(int scenes) {
  auto params = rc::detail::configuration().testParams;
  const char* text = std::getenv("RC_PARAMS");
  const std::string_view given = text == nullptr ? "" : text;
  if (given.find("seed=") == std::string_view::npos) params.seed = kSeed;
  if (given.find("max_success=") == std::string_view::npos) params.maxSuccess = scenes;
  return params;
}

}  // namespace muster::properties
