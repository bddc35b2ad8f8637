// Layer: one part of a model, as arithmetic on plain buffers.
//
// A model is a list of layers, so that it can be cut between any two of them. A layer may be made
// of slices: each slice has parameters of its own, sees the whole input and gives a summand of the
// output (and, going back, of the input's gradient), so that it can be cut inside too. Summands are
// added in the order of ShardTree, whoever holds them; what comes after the sum is done once, by
// Finish. The bits of a result depend on the numbers and sizes that go in and on nothing else: no
// time, no threads, no alignment, no randomness.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/compute/matrix.h"

namespace muster::train {

// What a pass forward keeps for the pass back, beside the input.
using Saved = std::vector<Matrix>;

class Layer {
 public:
  virtual ~Layer() = default;
  virtual std::string Describe() const = 0;             // "dense 64 to 128"
  virtual int slices() const { return 1; }              // 1: not cut inside
  virtual std::size_t parameters() const { return 0; }  // floats of each slice
  virtual Shape OutputShape(Shape input) const = 0;
  // Multiplications of a pass forward through all slices, about: what is compared is layers.
  virtual std::uint64_t Cost(Shape input) const;

  // Parameters of the slice at the start, from numbers keyed by the seed, the layer and the slice.
  virtual void Start(std::uint64_t seed, int layer, int slice, std::span<float> parameters) const;
  // A summand of the output; with one slice, all of it.
  virtual Matrix Forward(std::span<const float> parameters, int slice, const Matrix& input,
                         Saved& saved) const = 0;
  // Gives the gradient of the input (a summand of it), writes that of the parameters (all of it).
  virtual Matrix Backward(std::span<const float> parameters, int slice, const Matrix& input,
                          const Saved& saved, const Matrix& output_gradient,
                          std::span<float> gradient) const = 0;

  // What the sum over the slices becomes: a residual layer adds its input.
  virtual void Finish(const Matrix& input, Matrix& sum) const;
  // And what the sum of the input's gradients becomes.
  virtual void FinishBackward(const Matrix& output_gradient, Matrix& input_gradient) const;
};

// into += values; of the same shape.
void Add(const Matrix& values, Matrix& into);

// The sum of the summands of all slices, in the order of ShardTree. At least one.
Matrix SumSlices(std::vector<Matrix> summands);

// All slices of a layer on one worker, with what follows them. `parameters`, `gradient`: those of
// the slices one after another. `saved`: one for each slice.
Matrix ForwardAll(const Layer& layer, std::span<const float> parameters, const Matrix& input,
                  std::vector<Saved>& saved);
Matrix BackwardAll(const Layer& layer, std::span<const float> parameters, const Matrix& input,
                   const std::vector<Saved>& saved, const Matrix& output_gradient,
                   std::span<float> gradient);

}  // namespace muster::train
