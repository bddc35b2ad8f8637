// Nvml: NVIDIA's management library, opened while the program runs.
//
// That there is no library is an ordinary answer: this machine has no NVIDIA driver, hence no GPUs
// for us. A library that cannot be loaded or whose driver does not answer is an error that says
// what to do. Opening may take a second where the driver sleeps without persistence mode, a call
// afterwards microseconds. Shut down and unloaded with the object; calls may come from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/nvml_abi.h"

namespace muster::device {

struct NvmlOptions {
  // Tried in turn until one is there; the last is where Windows puts it for its Linux guests.
  std::vector<std::string> libraries = {"libnvidia-ml.so.1", "libnvidia-ml.so",
                                        "/usr/lib/wsl/lib/libnvidia-ml.so.1"};
};

class Nvml {
 public:
  // Null: there is no such library here.
  static Result<std::unique_ptr<Nvml>> Open(const NvmlOptions& options);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  const NvmlApi& Api() const { return api_; }
  // Any other function of the library; null when it has none of that name.
  void* Symbol(const char* name) const;
  std::string ErrorText(NvmlReturn code) const;
  std::string DriverVersion() const;  // empty: not told

 private:
  explicit Nvml(void* library) : library_(library) {}
  Result<void> Resolve(const std::string& name);
  Result<void> Start();

  void* library_;
  NvmlApi api_;
  bool started_ = false;
};

}  // namespace muster::device
