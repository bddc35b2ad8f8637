#include "train/torch/torch_workload.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/autocast_mode.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/cuda.h>
#include <torch/utils.h>
#include <torch/version.h>
#ifdef MUSTER_TORCH_CUDA
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#endif

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/check.h"
#include "train/exact/philox.h"
#include "train/members/terms.h"
#include "train/run/device_sum.h"
#include "train/torch/nccl_group.h"

namespace muster::train {

namespace {

constexpr std::uint32_t kTorchStream = 0x746f7263;  // the last word of the counter, as in streams.h
constexpr std::size_t kPieceFloats = std::size_t{1} << 20U;

// What differs between torch 1.13 and 2.x, and nothing else does.
#if TORCH_VERSION_MAJOR >= 2
void SetAutocast(c10::DeviceType device, bool on, at::ScalarType type) {
  if (on) at::autocast::set_autocast_dtype(device, type);
  at::autocast::set_autocast_enabled(device, on);
}
// Memory that is about to be written need not be cleared.
void LeaveMemoryAsItIs() { at::globalContext().setDeterministicFillUninitializedMemory(false); }
#else
void SetAutocast(c10::DeviceType device, bool on, at::ScalarType type) {
  if (device == c10::kCUDA) {
    if (on) at::autocast::set_autocast_gpu_dtype(type);
    at::autocast::set_enabled(on);
  } else {
    if (on) at::autocast::set_autocast_cpu_dtype(type);
    at::autocast::set_cpu_enabled(on);
  }
}
void LeaveMemoryAsItIs() {}
#endif

// Products in fewer bits, for the time of a forward pass.
class Autocast {
 public:
  Autocast(c10::DeviceType device, const std::string& precision)
      : device_(device), on_(precision != "float32") {
    if (on_) SetAutocast(device, true, precision == "float16" ? at::kHalf : at::kBFloat16);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast() {
    if (!on_) return;
    SetAutocast(device_, false, at::kFloat);
    at::autocast::clear_cache();  // of parameters in few bits: the next step has others
  }

 private:
  c10::DeviceType device_;
  bool on_;
};

// The part of a torch error that says what is wrong.
std::string Wrong(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

torch::Tensor View(float* floats, c10::IntArrayRef sizes) {
  return torch::from_blob(floats, sizes, torch::kFloat32);
}

std::int64_t Signed(std::size_t count) { return static_cast<std::int64_t>(count); }

// In the fewest digits that are still this number: "8", "0.125".
std::string Shortest(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

// The instructions that torch's own kernels use here: "AVX2". From a text, because torch 1.13 says
// it nowhere else.
std::string CpuLevel() {
  constexpr std::string_view kBefore = "CPU capability usage: ";
  const auto config = at::show_config();
  const auto found = config.find(kBefore);
  if (found == std::string::npos) return "unknown";
  const auto first = found + kBefore.size();
  return config.substr(first, config.find('\n', first) - first);
}

bool IsPowerOfTwo(double value) {
  int exponent = 0;
  return value > 0 && std::frexp(value, &exponent) == 0.5;
}

Result<void> CheckOptions(const TorchOptions& options) {
  if (options.device != "cpu" && options.device != "cuda") {
    return Fail(ErrorCode::kInvalid, "no device '" + options.device + "'", "cpu or cuda");
  }
  if (options.device == "cuda" && !torch::cuda::is_available()) {
    return Fail(ErrorCode::kUnavailable, "this torch sees no GPU",
                "use --device cpu, or a torch with CUDA on a machine with a GPU");
  }
  const auto& precision = options.precision;
  if (precision != "float32" && precision != "bfloat16" && precision != "float16") {
    return Fail(ErrorCode::kInvalid, "no precision '" + precision + "'",
                "float32, bfloat16 or float16");
  }
  if (precision == "float16" && options.device == "cpu") {
    return Fail(ErrorCode::kInvalid, "float16 is for a GPU", "use bfloat16 on the CPU");
  }
  if (options.sum != "auto" && options.sum != "mesh" && options.sum != "nccl") {
    return Fail(ErrorCode::kInvalid, "no way to sum '" + options.sum + "'", "auto, mesh or nccl");
  }
  if (!IsPowerOfTwo(options.loss_scale)) {
    return Fail(ErrorCode::kInvalid, "the scale of the loss is no power of two",
                "1, 1024, 65536, ...: then it rounds nothing");
  }
  return {};
}

void BeDeterministic(const TorchOptions& options) {
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);  // read when the first product is made
  at::globalContext().setDeterministicAlgorithms(true, false);
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
  LeaveMemoryAsItIs();
  at::set_num_threads(options.threads);
}

}  // namespace

// The way of one gradient from torch to the runtime's floats. torch calls a hook for each parameter
// once its gradient is complete, about from the last to the first.
class TorchWorkload::Gradients {
 public:
  Gradients(const TorchWorkload& workload, std::size_t tensors)
      : device_(workload.device_),
        offsets_(workload.offsets_),
        scale_(static_cast<float>(1 / workload.options_.loss_scale)),
        came_(tensors) {
    if (device_.is_cpu()) return;
    const auto floats = Signed(offsets_.back());
    all_ = torch::empty({floats}, torch::TensorOptions(torch::kFloat32).device(device_));
    pinned_ = torch::empty({floats}, torch::TensorOptions(torch::kFloat32).pinned_memory(true));
  }

  void Begin(std::span<float> into, ShardProgress& progress) {
    group_ = nullptr;
    Expect(into, progress);
    Again(true);
    sent_ = into.size();
  }

  // Several shards into one sum, which a group of GPUs sums further.
  void Begin(const DeviceSum::Task& task, NcclGroup& group, std::span<float> into,
             ShardProgress& progress) {
    group_ = &group;
    task_ = task;
    summed_ = 0;
    all_.zero_();
    Expect(into, progress);
  }
  // The next shard; with the last one parts of the sum are final.
  void Again(bool last) {
    std::fill(came_.begin(), came_.end(), false);
    final_ = came_.size();
    last_ = last;
  }

  // On the thread that runs backward for this device; the caller of backward waits meanwhile.
  void Came(std::size_t index, const torch::Tensor& gradient) {
    if (device_.is_cpu()) {
      auto into = View(into_.data() + offsets_[index], gradient.sizes());
      into.copy_(gradient);
      if (scale_ != 1) into.mul_(scale_);
    } else {
      auto into = Part(index, index + 1).view(gradient.sizes());
      group_ != nullptr ? into.add_(gradient) : into.copy_(gradient);
    }
    Note(index);
  }

  // Parameters that the loss does not depend on have no gradient. False: broken off.
  bool End() {
    for (std::size_t index = came_.size(); index-- > 0;) {
      if (came_[index]) continue;
      if (group_ != nullptr) {
        // what the shards before have is there
      } else if (device_.is_cpu()) {
        std::ranges::fill(into_.subspan(offsets_[index], offsets_[index + 1] - offsets_[index]), 0);
      } else {
        Part(index, index + 1).zero_();
      }
      Note(index);
    }
    for (auto& piece : pieces_) {
      while (whole_ && !piece.there.query()) {
        std::this_thread::yield();
        // A sum may wait for somebody who is gone.
        if (group_ != nullptr) whole_ = progress_->Need({0, 0}) && !group_->Broken();
      }
      if (!whole_) break;
      std::memcpy(into_.data() + piece.floats.first, pinned_.data_ptr<float>() + piece.floats.first,
                  piece.floats.size() * sizeof(float));
      whole_ = progress_->Ready(piece.ready);
    }
    pieces_.clear();
    return whole_;
  }

 private:
  struct Piece {
    Extent floats;
    std::size_t ready = 0;  // the gradient from here on is as it will stay, then
    c10::Event there;
  };

  void Expect(std::span<float> into, ShardProgress& progress) {
    into_ = into;
    progress_ = &progress;
    whole_ = true;
  }

  torch::Tensor Part(std::size_t first, std::size_t last) const {
    return all_.narrow(0, Signed(offsets_[first]), Signed(offsets_[last] - offsets_[first]));
  }

  void Note(std::size_t index) {
    came_[index] = true;
    const auto before = final_;
    while (final_ > 0 && came_[final_ - 1]) --final_;
    if (final_ == before || !last_) return;
    const auto first = offsets_[final_];
    if (group_ != nullptr) {
      while (summed_ < task_.buckets.size() && task_.buckets[summed_].first >= first) {
        Sum(task_.buckets[summed_++]);
      }
    } else if (device_.is_cpu()) {
      whole_ = whole_ && progress_->Ready(first);
    } else if (sent_ - first >= kPieceFloats || (final_ == 0 && sent_ > 0)) {
      Send({first, std::exchange(sent_, first)});
    }
  }

  // To the host on a stream of its own, so that the work on earlier layers goes on.
  void Send(Extent floats) {
    Complete(floats);
    Copy(floats, floats.first);
  }

  // Over all workers first; then the own part alone comes here.
  void Sum(Extent bucket) {
    const auto goes_on = [this] { return progress_->Need({0, 0}); };
    if (!whole_ || !goes_on()) {
      whole_ = false;
      return;
    }
    Complete(bucket);
    std::vector<Extent> parts;
    for (int i = 0; i < task_.parts; ++i) parts.push_back(PartOf(bucket, task_.parts, i));
    if (!group_->Reduce(all_.data_ptr<float>(), parts, *copying_, goes_on)) {
      whole_ = false;
      return;
    }
    Copy(parts[static_cast<std::size_t>(task_.part)], bucket.first);
  }

  // What is computed of it so far is there before anything else happens on the stream of copies.
  void Complete(Extent floats) {
    const c10::impl::VirtualGuardImpl gpu(device_.type());
    if (scale_ != 1) all_.narrow(0, Signed(floats.first), Signed(floats.size())).mul_(scale_);
    c10::Event complete(device_.type());
    complete.record(gpu.getStream(all_.device()));
    if (!copying_) copying_ = gpu.getStreamFromGlobalPool(all_.device());
    complete.block(*copying_);
  }

  void Copy(Extent floats, std::size_t ready) {
    const c10::StreamGuard guard(*copying_);
    const auto part = all_.narrow(0, Signed(floats.first), Signed(floats.size()));
    pinned_.narrow(0, Signed(floats.first), Signed(floats.size())).copy_(part, true);
    pieces_.push_back({floats, ready, c10::Event(device_.type())});
    pieces_.back().there.record(*copying_);
  }

  torch::Device device_;
  const std::vector<std::size_t>& offsets_;
  float scale_;
  std::vector<bool> came_;
  std::size_t final_ = 0;  // this parameter and all behind it came
  std::size_t sent_ = 0;   // the gradient from here to the end is on its way to the host
  std::span<float> into_;
  ShardProgress* progress_ = nullptr;
  bool whole_ = true;
  NcclGroup* group_ = nullptr;  // that sums further; or null
  DeviceSum::Task task_;
  std::size_t summed_ = 0;      // buckets
  bool last_ = true;            // shard
  torch::Tensor all_, pinned_;  // the gradient on the GPU, and where the host sees it
  std::optional<c10::Stream> copying_;
  std::vector<Piece> pieces_;
};

// Sums on the GPUs of a gang.
class TorchWorkload::OnDevice final : public DeviceSum {
 public:
  OnDevice(TorchWorkload& workload, std::unique_ptr<NcclGroup> group)
      : workload_(workload), group_(std::move(group)) {}

  std::string Device() const override { return group_->Device(); }
  void Begin() override { group_->Begin(); }
  Result<std::string> Invite() override { return group_->Invite(); }
  Result<void> Join(const std::string& invitation, int rank, int size) override {
    return group_->Join(invitation, rank, size);
  }
  void Leave() override { group_->Leave(); }
  Result<std::vector<ShardResult>> Compute(const Task& task, std::span<const float> parameters,
                                           std::span<float> gradient,
                                           ShardProgress& progress) override {
    const std::lock_guard lock(workload_.mutex_);
    auto& gradients = *workload_.gradients_;
    std::vector<ShardResult> out;
    try {
      gradients.Begin(task, *group_, gradient, progress);
      for (int shard = task.shards.first; shard < task.shards.last; ++shard) {
        gradients.Again(shard + 1 == task.shards.last);
        out.push_back(workload_.Run(task.step, shard, parameters));
      }
      if (gradients.End()) return out;
    } catch (const std::exception& error) {
      CheckFailed("a shard is computed", __FILE__, __LINE__, "torch: " + Wrong(error));
    }
    group_->Leave();  // whatever waits on the GPU ends
    return Fail(ErrorCode::kUnavailable, "the sum on the GPUs was broken off");
  }

 private:
  TorchWorkload& workload_;
  std::unique_ptr<NcclGroup> group_;
};

DeviceSum* TorchWorkload::device_sum() { return on_device_.get(); }

Result<std::unique_ptr<TorchWorkload>> TorchWorkload::Open(TorchJob job,
                                                           const TorchOptions& options) {
  const auto kernels = KernelsFor(options.kernels);
  if (!kernels) return tl::unexpected(kernels.error());
  const auto optimizer = ParseOptimizer(options.optimizer);
  if (!optimizer) return tl::unexpected(optimizer.error());
  const auto rate = ParseRate(options.rate);
  if (!rate) return tl::unexpected(rate.error());
  if (const auto checked = CheckOptions(options); !checked) {
    return tl::unexpected(checked.error());
  }
  BeDeterministic(options);
  std::unique_ptr<TorchWorkload> out;
  try {
    out.reset(new TorchWorkload(std::move(job), options, **kernels, *optimizer, *rate));
    if (const auto made = out->Prepare(); !made) return tl::unexpected(made.error());
    if (const auto tried = out->Try(); !tried) return tl::unexpected(tried.error());
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kInvalid, "torch: " + Wrong(error), "the model and the data must fit");
  }
  return out;
}

TorchWorkload::TorchWorkload(TorchJob job, const TorchOptions& options, const Kernels& kernels,
                             const OptimizerSpec& optimizer, const RateSpec& rate)
    : job_(std::move(job)),
      options_(options),
      device_(options.device),
      optimizer_(kernels, optimizer),
      rate_(rate) {
  options_.kernels = kernels.name;
}

TorchWorkload::~TorchWorkload() = default;

Result<void> TorchWorkload::Prepare() {
  module_ = job_.make();
  parameters_ = module_->parameters();
  offsets_.reserve(parameters_.size() + 1);
  offsets_.push_back(0);
  for (const auto& parameter : parameters_) {
    if (parameter.scalar_type() != torch::kFloat32) {
      return Fail(ErrorCode::kInvalid, "a parameter of the module is not float32",
                  "keep parameters in float32; precision is an option");
    }
    offsets_.push_back(offsets_.back() + static_cast<std::size_t>(parameter.numel()));
  }
  if (offsets_.back() == 0) return Fail(ErrorCode::kInvalid, "the module has no parameters");
  module_->to(device_);
  if (!device_.is_cpu()) {
    copy_ = torch::empty({Signed(offsets_.back())},
                         torch::TensorOptions(torch::kFloat32).device(device_));
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].set_data(
          copy_.narrow(0, Signed(offsets_[i]), Signed(offsets_[i + 1] - offsets_[i]))
              .view(parameters_[i].sizes()));
    }
  }
  gradients_ = std::make_unique<Gradients>(*this, parameters_.size());
  if (!device_.is_cpu() && options_.sum != "mesh") {
    if (auto group = NcclGroup::Make())
      on_device_ = std::make_unique<OnDevice>(*this, std::move(group));
  }
  if (options_.sum == "nccl" && !on_device_) {
    return Fail(ErrorCode::kUnavailable, "no sums by NCCL here",
                "they need --device cuda, and a torch with CUDA and NCCL when this was built");
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].register_hook(
        [this, i](const torch::Tensor& gradient) { gradients_->Came(i, gradient); });
  }
  return {};
}

// A forward pass alone. Buffers that it changes would differ between workers.
Result<void> TorchWorkload::Try() {
  std::vector<float> started(offsets_.back());
  Start(options_.seed, started);
  Load(started);
  const auto buffers = module_->named_buffers();
  std::vector<torch::Tensor> before;
  before.reserve(buffers.size());
  for (const auto& buffer : buffers) before.push_back(buffer.value().clone());
  const torch::NoGradGuard no_gradients;
  const auto batch = job_.data(0, 0);
  if (batch.samples > 0 && Forward(Here(batch)).numel() != 1) {
    return Fail(ErrorCode::kInvalid, "the loss is not one number", "sum it over the samples");
  }
  if (auto told = TrySamples(batch.samples); !told) return told;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (torch::equal(buffers[i].value(), before[i])) continue;
    return Fail(ErrorCode::kInvalid,
                "training changes the buffer " + buffers[i].key() + " of the module",
                "only parameters are handed over: use layer or group norm, or freeze it");
  }
  return {};
}

// Who audits must not be told of other samples than those that are taken.
Result<void> TorchWorkload::TrySamples(std::int64_t taken) const {
  if (!job_.samples) return {};
  const auto samples = job_.samples(0, 0);
  if (Signed(samples.size()) != taken) {
    return Fail(ErrorCode::kInvalid,
                "the first shard takes " + std::to_string(taken) + " samples and names " +
                    std::to_string(samples.size()),
                "let data() take those that samples() names");
  }
  const auto last = std::ranges::max_element(samples);
  if (last == samples.end() || *last < job_.epoch_samples) return {};
  return Fail(ErrorCode::kInvalid,
              "sample " + std::to_string(*last) + " is named in an epoch of " +
                  std::to_string(job_.epoch_samples),
              "number the samples of an epoch from 0, and say how many there are");
}

// Without fmt: torch 2 brings headers of another version of it along.
std::string TorchWorkload::Describe() const {
  return JoinTerms(job_.terms, "batch " + std::to_string(job_.batch) + "; optimizer " +
                                   options_.optimizer + "; rate " + options_.rate + "; precision " +
                                   options_.precision + "; loss-scale " +
                                   Shortest(options_.loss_scale));
}

std::string TorchWorkload::ComputedWith() const {
  std::string device = options_.device;
#ifdef MUSTER_TORCH_CUDA
  if (device_.is_cuda()) {
    device += std::string("; gpu ") + at::cuda::getDeviceProperties(copy_.device().index())->name;
  }
#endif
  return std::string("torch ") + TORCH_VERSION + "; device " + device + "; cpu " + CpuLevel() +
         "; threads " + std::to_string(options_.threads) + "; kernels " + options_.kernels;
}

std::vector<std::size_t> TorchWorkload::LayerFloats() const {
  std::vector<std::size_t> out;
  out.reserve(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) out.push_back(offsets_[i + 1] - offsets_[i]);
  return out;
}

std::vector<std::uint64_t> TorchWorkload::SamplesOf(std::int64_t step, int shard) const {
  if (!job_.samples) return {};
  const std::lock_guard lock(mutex_);
  try {
    return job_.samples(step, shard);
  } catch (const std::exception& error) {
    CheckFailed("a shard says its samples", __FILE__, __LINE__, Wrong(error));
  }
}

void TorchWorkload::Start(std::uint64_t seed, std::span<float> parameters) const {
  const std::lock_guard lock(mutex_);
  torch::manual_seed(seed);
  const auto fresh = job_.make()->parameters();
  const torch::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    View(parameters.data() + offsets_[i], fresh[i].sizes()).copy_(fresh[i]);
  }
}

void TorchWorkload::Load(std::span<const float> parameters) {
  auto* floats = const_cast<float*>(parameters.data());  // views of what is only read
  if (!device_.is_cpu()) {
    copy_.copy_(View(floats, {Signed(parameters.size())}));
    copied_step_ = -1;
    return;
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].set_data(View(floats + offsets_[i], parameters_[i].sizes()));
  }
}

torch::nn::Module& TorchWorkload::With(std::span<const float> parameters) {
  Load(parameters);
  return *module_;
}

TorchBatch TorchWorkload::Here(const TorchBatch& batch) const {
  return {batch.inputs.to(device_), batch.targets.to(device_), batch.samples};
}

torch::Tensor TorchWorkload::Forward(const TorchBatch& batch) {
  const Autocast autocast(device_.type(), options_.precision);
  return job_.loss(*module_, batch);
}

ShardResult TorchWorkload::Compute(std::int64_t step, int shard, std::span<const float> parameters,
                                   std::span<float> gradient, ShardProgress& progress) {
  const std::lock_guard lock(mutex_);
  // Whoever gets an error from torch in the middle of a run cannot go on; the others can.
  try {
    gradients_->Begin(gradient, progress);
    if (!progress.Need({0, parameters.size()})) return {};
    if (!progress.SameInStep()) copied_step_ = -1;
    const auto result = Run(step, shard, parameters);
    return gradients_->End() ? result : ShardResult{};
  } catch (const std::exception& error) {
    CheckFailed("a shard is computed", __FILE__, __LINE__, "torch: " + Wrong(error));
  }
}

// Forward and back; what is to become of the gradients was said before.
ShardResult TorchWorkload::Run(std::int64_t step, int shard, std::span<const float> parameters) {
  at::init_num_threads();  // on this thread: what was set on another one does not hold here
  const auto batch = job_.data(step, shard);
  if (batch.samples == 0) return {};
  if (device_.is_cpu() || copied_step_ != step) Load(parameters);
  copied_step_ = step;
  const auto drawn =
      Philox(options_.seed, {static_cast<std::uint32_t>(step),
                             static_cast<std::uint32_t>(static_cast<std::uint64_t>(step) >> 32U),
                             static_cast<std::uint32_t>(shard), kTorchStream});
  torch::manual_seed(std::uint64_t{drawn[0]} << 32U | drawn[1]);
  const auto loss = Forward(Here(batch));
  (loss * (options_.loss_scale / static_cast<double>(job_.batch))).backward();
  for (auto& parameter : parameters_) parameter.mutable_grad().reset();
  return {loss.item<double>(), batch.samples};
}

void TorchWorkload::Update(const UpdateStep& step, std::span<const float> gradient,
                           std::span<const float> parameters, std::span<const float> state,
                           std::span<float> new_parameters, std::span<float> new_state) const {
  UpdateIn in{parameters, gradient, {}};
  UpdateOut out{new_parameters, {}};
  const std::size_t n = gradient.size(), planes = optimizer_.StateFloats();
  for (std::size_t plane = 0; plane < planes; ++plane) {
    in.state[plane] = state.subspan(plane * n, n);
    out.state[plane] = new_state.subspan(plane * n, n);
  }
  optimizer_.Update(step.last(), ScaledRate(rate_, step.middle(), step.rate), in, out,
                    step.batches);
  if (options_.precision == "float16") KeepWhereNotFinite(in, out);
}

std::string TorchWorkload::Used() const {
  std::string out = std::string("torch ") + TORCH_VERSION + ", " + options_.device;
#ifdef MUSTER_TORCH_CUDA
  if (device_.is_cuda()) {
    constexpr std::int64_t kMebi = 1 << 20;
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(copy_.device().index());
    out += "; at most " + std::to_string(stats.allocated_bytes[0].peak / kMebi) +
           " MiB of its memory in tensors, " +
           std::to_string(stats.reserved_bytes[0].peak / kMebi) + " MiB taken";
  }
#endif
  return out;
}

}  // namespace muster::train
