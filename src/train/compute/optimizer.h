// Optimizer: one step of the parameters along their gradient, each number by itself.
//
// So any part of the parameters can be updated by anybody, with the same bits. New values go to
// other memory than old ones (or to the same): who keeps two steps can go back by one. The state is
// StateFloats() numbers for each parameter, as so many arrays; all begin as zero.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "train/compute/kernels.h"

namespace muster::train {

enum class OptimizerKind { kSgd, kAdam };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kSgd;
  float momentum = 0;      // kSgd
  float weight_decay = 0;  // kSgd: added to the gradient; kAdam: apart from it (AdamW)
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;  // kAdam

  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

// "sgd", "sgd:momentum=0.9,decay=1e-4", "adam",
// "adam:beta1=0.9,beta2=0.98,epsilon=1e-8,decay=0.01".
Result<OptimizerSpec> ParseOptimizer(std::string_view text);

// Some parameters, all arrays of the same length; of the states, the first StateFloats() are used.
struct UpdateIn {
  std::span<const float> parameters, gradient;
  std::array<std::span<const float>, 2> state = {};
};
struct UpdateOut {
  std::span<float> parameters;
  std::array<std::span<float>, 2> state = {};
};

// Takes back what an update made of numbers whose gradient is infinite or none at all: they and
// their state stay as they were. A state that is not there is empty.
void KeepWhereNotFinite(const UpdateIn& in, const UpdateOut& out);

class Optimizer {
 public:
  Optimizer(const Kernels& kernels, const OptimizerSpec& spec) : kernels_(kernels), spec_(spec) {}

  std::size_t StateFloats() const;  // for each parameter
  // `step`: of the run, the first is 1. `batches`: steps that this one stands for, `step` being the
  // last; averages of Adam forget as much as in all of them, so that a sample counts for as long
  // whatever the batch, and the corrections of their start stay right.
  void Update(std::int64_t step, float learning_rate, const UpdateIn& in, const UpdateOut& out,
              std::int64_t batches = 1) const;

 private:
  const Kernels& kernels_;
  OptimizerSpec spec_;
};

}  // namespace muster::train
