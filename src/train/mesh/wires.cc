#include "train/mesh/wires.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <utility>
#include <vector>

#include "train/mesh/address.h"

namespace muster::train {
namespace {

constexpr const char* kNoGloo =
    "build where Gloo is installed (Debian: libgloo-dev) and keep libmuster-train-gloo.so beside "
    "the program, or take --wire tcp";

// Beside the program, or where packages put it.
std::vector<std::string> PortFiles() {
  std::array<char, 4096> text{};
  const ssize_t size = readlink("/proc/self/exe", text.data(), text.size() - 1);
  const std::string program(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  const std::string folder = program.substr(0, program.rfind('/') + 1);
  return {folder + kWirePortFile, folder + "../lib/muster/" + kWirePortFile};
}

Result<const WirePort*> LoadPort() {
  std::string why;
  for (const auto& file : PortFiles()) {
    if (::access(file.c_str(), F_OK) != 0) continue;
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* const said = ::dlerror();
      why = said == nullptr ? file : said;
      continue;
    }
    const auto get = reinterpret_cast<WirePortFunction>(::dlsym(library, kWirePortSymbol));
    const WirePort* const port = get == nullptr ? nullptr : get();
    if (port != nullptr && port->version == kWirePortVersion) return port;
    why = file + " is of another version";
  }
  if (why.empty()) why = fmt::format("there is no {} beside this program", kWirePortFile);
  return Fail(ErrorCode::kUnavailable, "Gloo cannot be loaded: " + why, kNoGloo);
}

bool HasRdma(const std::string& sources) {
  std::error_code failed;
  const std::filesystem::directory_iterator devices(sources, failed);
  return !failed && devices != std::filesystem::directory_iterator();
}

bool ReadNumber(const std::string& text, int& into) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), into);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() && into >= 0;
}

// Threads that are started while it lives leave signals to those of the program.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Result<WireChoice> ParseWire(const std::string& text) {
  WireChoice out;
  const auto colon = text.find(':');
  const std::string name = text.substr(0, colon);
  if (name == "auto") {
    out.automatic = true;
    out.kind = WireKind::kIbverbs;
  } else if (name == "gloo") {
    out.kind = WireKind::kGloo;
  } else if (name == "ibverbs") {
    out.kind = WireKind::kIbverbs;
  } else if (name != "tcp") {
    return Fail(ErrorCode::kInvalid, fmt::format("there is no wire \"{}\"", text),
                "it may be tcp, gloo, ibverbs or auto");
  }
  if (text == "auto:gloo") out.kind = WireKind::kGloo;
  if (colon == std::string::npos || text == "auto:gloo") return out;
  const std::string more = text.substr(colon + 1);
  const auto slash = more.find('/'), second = more.find('/', slash + 1);
  out.device = more.substr(0, slash);
  bool good = name == "ibverbs" && !out.device.empty();
  if (slash != std::string::npos) {
    good = good && ReadNumber(more.substr(slash + 1, second - slash - 1), out.port);
    if (second != std::string::npos)
      good = good && ReadNumber(more.substr(second + 1), out.gid_index);
  }
  if (good) return out;
  return Fail(ErrorCode::kInvalid, fmt::format("\"{}\" is no wire", text),
              "a device is said as ibverbs:DEVICE/PORT/GID, as in ibverbs:mlx5_0/1/3");
}

Result<std::unique_ptr<Wires>> Wires::Open(const MeshOptions& options, const std::string& sources) {
  const auto choice = ParseWire(options.wire);
  if (!choice) return tl::unexpected(choice.error());
  std::unique_ptr<Wires> out(new Wires);
  out->timeout_ms_ = options.timeout_ms;
  if (choice->kind == WireKind::kTcp) return out;
  if (choice->kind == WireKind::kIbverbs && !HasRdma(sources)) {
    if (choice->automatic) return out;
    return Fail(ErrorCode::kUnavailable,
                "--wire ibverbs: this machine has no device for RDMA (nothing in " + sources + ")",
                "load the driver of its adapter, or take --wire tcp or auto");
  }
  const auto opened = out->OpenDevice(*choice, options);
  if (!opened && !choice->automatic) return tl::unexpected(opened.error());
  if (!opened) return out;
  const auto kind = static_cast<WireKinds>(choice->kind);
  out->kinds_ = choice->automatic ? static_cast<WireKinds>(out->kinds_ | kind) : kind;
  return out;
}

Result<void> Wires::OpenDevice(const WireChoice& choice, const MeshOptions& options) {
  const auto port = LoadPort();
  if (!port) return tl::unexpected(port.error());
  const std::string address = SplitAddress(options.address).host;
  const WireDeviceOptions device{choice.kind == WireKind::kIbverbs, address.c_str(),
                                 choice.device.c_str(), choice.port, choice.gid_index};
  WireFault why{};
  const NoSignals none;
  device_ = (*port)->open_device(&device, &why);
  if (device_ == nullptr) {
    return Fail(ErrorCode::kUnavailable, fmt::format("Gloo has no device for it: {}", why.text),
                "take --wire tcp");
  }
  port_ = *port;
  return {};
}

Wires::~Wires() {
  std::list<Running> running;
  {
    const std::lock_guard lock(mutex_);
    running.swap(running_);
  }
  for (const auto& each : running) each.wire->Detach();
  for (auto& each : running) each.thread.join();
  running.clear();
  if (device_ != nullptr) port_->close_device(device_);
}

std::shared_ptr<Wire> Wires::Make(const WireTerms& terms, Throttle& throttle) {
  if (terms.kind == WireKind::kTcp || device_ == nullptr) return nullptr;
  return std::make_shared<Wire>(WireParts{*port_, *device_, terms, throttle, timeout_ms_});
}

void Wires::Start(std::shared_ptr<Wire> wire, WireOwner& owner) {
  const std::lock_guard lock(mutex_);
  Reap();
  Running& running = running_.emplace_back();
  running.wire = std::move(wire);
  const NoSignals none;
  running.thread = std::thread([&owner, &running, each = running.wire.get()] {
    each->Run(owner);
    running.over = true;
  });
  pthread_setname_np(running.thread.native_handle(), "muster-wire");
}

void Wires::Reap() {
  std::erase_if(running_, [](Running& each) {
    if (!each.over) return false;
    each.thread.join();
    return true;
  });
}

}  // namespace muster::train
