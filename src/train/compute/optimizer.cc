#include "train/compute/optimizer.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "train/compute/settings.h"

namespace muster::train {

namespace {

// beta^steps, by squaring: multiplications alone round alike everywhere.
double Power(float beta, std::int64_t steps) {
  double power = 1;
  double square = static_cast<double>(beta);
  for (auto left = static_cast<std::uint64_t>(steps); left > 0; left /= 2) {
    if (left % 2 == 1) power *= square;
    square *= square;
  }
  return power;
}

float Correction(float beta, std::int64_t step) {
  return static_cast<float>(1 / (1 - Power(beta, step)));
}

void CheckSizes(const UpdateIn& in, const UpdateOut& out, std::size_t states) {
  const std::size_t n = in.parameters.size();
  bool equal = in.gradient.size() == n && out.parameters.size() == n;
  for (std::size_t i = 0; i < states; ++i) {
    equal = equal && in.state[i].size() == n && out.state[i].size() == n;
  }
  MUSTER_CHECK(equal, "parts of the parameters and their states have the same length");
}

}  // namespace

Result<OptimizerSpec> ParseOptimizer(std::string_view text) {
  const auto settings = ParseSettings(text);
  if (!settings) return tl::unexpected(settings.error());
  OptimizerSpec out;
  double momentum = 0, decay = 0;
  double beta1 = static_cast<double>(out.beta1), beta2 = static_cast<double>(out.beta2);
  double epsilon = static_cast<double>(out.epsilon);
  constexpr double kBelowOne = 0.999999;
  Result<void> read;
  if (settings->word == "sgd") {
    const Wanted wanted[] = {{.name = "momentum", .number = &momentum, .most = kBelowOne},
                             {.name = "decay", .number = &decay, .most = 1}};
    read = ReadSettings(*settings, wanted);
  } else if (settings->word == "adam") {
    out.kind = OptimizerKind::kAdam;
    const Wanted wanted[] = {{.name = "beta1", .number = &beta1, .most = kBelowOne},
                             {.name = "beta2", .number = &beta2, .most = kBelowOne},
                             {.name = "epsilon", .number = &epsilon, .least = 1e-12, .most = 1},
                             {.name = "decay", .number = &decay, .most = 1}};
    read = ReadSettings(*settings, wanted);
  } else {
    return Fail(ErrorCode::kInvalid, fmt::format("no optimizer '{}'", settings->word),
                "sgd or adam");
  }
  if (!read) return tl::unexpected(read.error());
  out.momentum = static_cast<float>(momentum);
  out.weight_decay = static_cast<float>(decay);
  out.beta1 = static_cast<float>(beta1);
  out.beta2 = static_cast<float>(beta2);
  out.epsilon = static_cast<float>(epsilon);
  return out;
}

void KeepWhereNotFinite(const UpdateIn& in, const UpdateOut& out) {
  for (std::size_t i = 0; i < in.gradient.size(); ++i) {
    if (std::isfinite(in.gradient[i])) continue;
    out.parameters[i] = in.parameters[i];
    for (std::size_t plane = 0; plane < in.state.size(); ++plane) {
      if (!in.state[plane].empty()) out.state[plane][i] = in.state[plane][i];
    }
  }
}

std::size_t Optimizer::StateFloats() const {
  if (spec_.kind == OptimizerKind::kAdam) return 2;
  return spec_.momentum > 0 ? 1 : 0;
}

void Optimizer::Update(std::int64_t step, float learning_rate, const UpdateIn& in,
                       const UpdateOut& out, std::int64_t batches) const {
  MUSTER_CHECK(batches >= 1, "a step has a batch");
  MUSTER_CHECK(step >= batches, "the first step is 1");
  CheckSizes(in, out, StateFloats());
  const std::size_t n = in.parameters.size();
  if (spec_.kind == OptimizerKind::kAdam) {
    const AdamStep adam{.learning_rate = learning_rate,
                        .beta1 = static_cast<float>(Power(spec_.beta1, batches)),
                        .beta2 = static_cast<float>(Power(spec_.beta2, batches)),
                        .epsilon = spec_.epsilon,
                        .weight_decay = spec_.weight_decay,
                        .correction1 = Correction(spec_.beta1, step),
                        .correction2 = Correction(spec_.beta2, step)};
    kernels_.adam(n, adam, in.parameters.data(), in.gradient.data(), in.state[0].data(),
                  in.state[1].data(), out.parameters.data(), out.state[0].data(),
                  out.state[1].data());
    return;
  }
  const bool moves = StateFloats() == 1;
  kernels_.sgd(n, learning_rate, spec_.momentum, spec_.weight_decay, in.parameters.data(),
               in.gradient.data(), moves ? in.state[0].data() : nullptr, out.parameters.data(),
               moves ? out.state[0].data() : nullptr);
}

}  // namespace muster::train
