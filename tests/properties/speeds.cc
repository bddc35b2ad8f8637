#include "speeds.h"

#include <array>
#include <string>

namespace muster::properties {
namespace {

// A number of the job's own, the same whenever it is asked for.
std::uint32_t Lot(const std::string& name, std::uint32_t what) {
  std::uint32_t value = 2'166'136'261U + what;
  for (const char letter : name) {
    value = (value ^ static_cast<unsigned char>(letter)) * 16'777'619U;
  }
  return value >> 8;
}

}  // namespace

engine::Policy Eager(engine::Policy policy) {
  policy.by_goodput = true;
  policy.resize_every_ms = 0;
  policy.turn_gpu_ms = INT64_MAX / 4;
  return policy;
}

void ReportSpeeds(World& world) {
  constexpr std::array<double, 3> kSync = {0.01, 1, 100};
  for (const auto& fact : world.jobs()) {
    const auto& name = fact.spec.name;
    const auto measured = Lot(name, 0) % 4;
    if (measured == 0) continue;
    engine::JobSpeed::Models models;
    for (std::uint32_t type = 0; type < 2; ++type) {
      if ((measured & (1U << type)) == 0) continue;
      engine::GoodputModel model;
      model.steps.compute_b = 1.0 / (1 + Lot(name, 1 + type) % 3);
      model.steps.within_a = kSync[Lot(name, 3) % 3];
      model.steps.across_a = kSync[Lot(name, 4) % 3];
      model.grad_var = 1e6;
      model.limits = {1, 1024, 1, 1};
      models[type == 0 ? "A" : "B"] = model;
    }
    world.cluster().ReportSpeed(world.cluster().FindJob(name),
                                {models, 1 + static_cast<int>(Lot(name, 5) % 8)});
  }
}

void GuessRunTimes(World& world) {
  constexpr std::array<std::int64_t, 4> kExpectedMs = {-1, 0, 60'000, 30LL * 24 * 3'600'000};
  for (const auto& fact : world.jobs()) {
    const auto job = world.cluster().FindJob(fact.spec.name);
    world.cluster().SetExpected(job, kExpectedMs[Lot(fact.spec.name, 6) % 4]);
  }
}

}  // namespace muster::properties
