#include "train/run/shim_line.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "base/temp_folder.h"

namespace muster::train {
namespace {

constexpr std::int64_t kPatienceMs = 60'000;

// The end of the line that a shim has, for one worker.
class Shim {
 public:
  explicit Shim(const std::string& path) : listener_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 4), 0);
  }
  Shim(const Shim&) = delete;
  Shim& operator=(const Shim&) = delete;
  ~Shim() {
    ::close(listener_);
    if (line_ >= 0) ::close(line_);
  }

  void Welcome() {
    line_ = ::accept(listener_, nullptr, nullptr);
    ReadLine();
    const std::string text = R"({"type":"welcome","version":1,"launch":"1.0.1","rank":0,)"
                             R"("world_size":1})"
                             "\n";
    EXPECT_EQ(::send(line_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  std::string ReadLine() {
    while (unread_.find('\n') == std::string::npos) {
      std::array<char, 65536> bytes{};
      const auto count = ::recv(line_, bytes.data(), bytes.size(), 0);
      if (count <= 0) return "";
      unread_.append(bytes.data(), static_cast<std::size_t>(count));
    }
    std::string out = unread_.substr(0, unread_.find('\n'));
    unread_.erase(0, out.size() + 1);
    return out;
  }

 private:
  int listener_, line_ = -1;
  std::string unread_;
};

class ShimLineTest : public testing::Test {
 protected:
  Result<std::unique_ptr<ShimLine>> Open(std::int64_t timeout_ms) {
    return ShimLine::Open(path_, {leave_, checkpoints_}, timeout_ms);
  }

  const TempFolder folder_;
  const std::string path_ = folder_ / "s";
  std::atomic<bool> leave_{false};
  std::atomic<std::int64_t> checkpoints_{0};
};

TEST_F(ShimLineTest, AShimThatReadsNothingStopsNobodyAndSeesWholeLinesOnly) {
  Shim shim(path_);
  std::thread welcoming([&] { shim.Welcome(); });
  auto line = Open(kPatienceMs);
  welcoming.join();
  ASSERT_TRUE(line) << line.error().message;
  constexpr int kLines = 1000;  // several times what the kernel keeps for a reader
  for (int i = 0; i < kLines; ++i) {
    (*line)->Say(contract::Kept{"/model-" + std::to_string(i), std::string(3001, 'x'), {}});
  }
  int seen = 0;
  std::atomic<bool> ready{false};
  std::thread reading([&] {
    while (!ready) {
      const auto text = shim.ReadLine();
      const auto json = nlohmann::json::parse(text, nullptr, false);
      if (json.is_discarded()) {
        ADD_FAILURE() << "half a line: " << text.substr(0, 200);
        return;
      }
      ++seen;
      ready = json.at("type") == "ready";
    }
  });
  // There is a reader now, so one of these finds room.
  for (auto tries = 0; !ready && tries < 6000; ++tries) {
    (*line)->Say(contract::Ready{});
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  line->reset();  // ends the reader, whatever it saw
  reading.join();
  EXPECT_TRUE(ready);
  EXPECT_GT(seen, 1);
  EXPECT_LT(seen, kLines);
}

TEST_F(ShimLineTest, AShimThatDoesNotWelcomeIsAnError) {
  const Shim shim(path_);  // takes connections and says nothing
  const auto line = Open(50);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(line.error().message.find("silent"), std::string::npos) << line.error().message;
}

}  // namespace
}  // namespace muster::train
