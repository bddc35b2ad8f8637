#include "shim/worker_socket.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

namespace muster::shim {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Both ends in one thread: what was sent is there when Serve() looks.
class WorkerSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() /
             ("muster-ws-" + std::to_string(getpid()) + ".sock"))
                .string();
    unlink(path_.c_str());
    address_.sun_family = AF_UNIX;
    path_.copy(address_.sun_path, sizeof address_.sun_path - 1);
    listener_ = Handle(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
    ASSERT_EQ(listen(listener_.get(), 8), 0);
    contract::Welcome welcome;
    welcome.version = 1;
    welcome.launch = "17.0.2";
    served_.emplace(listener_.get(), welcome,
                    [this](const contract::Said& said) { heard_.push_back(said); });
  }
  void TearDown() override { unlink(path_.c_str()); }

  Handle Connect() {
    Handle client(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
    return client;
  }
  void Say(const Handle& client, const std::string& text) {
    EXPECT_EQ(send(client.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    served_->Serve();
  }
  // Everything that is there; "closed" at the end of the connection.
  static std::string Hear(const Handle& client) {
    std::string text(1 << 16, '\0');
    const auto size = recv(client.get(), text.data(), text.size(), 0);
    if (size == 0 || (size < 0 && errno == ECONNRESET)) return "closed";
    text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return text;
  }

  static constexpr const char* kHello = "{\"type\":\"hello\",\"version\":1,\"pid\":1}\n";

  std::string path_;
  sockaddr_un address_{};
  Handle listener_;
  std::optional<WorkerSocket> served_;
  std::vector<contract::Said> heard_;
};

TEST_F(WorkerSocketTest, GreetsAndTakesLinesHoweverTheyAreCut) {
  const auto client = Connect();
  Say(client, kHello);
  EXPECT_THAT(Hear(client), HasSubstr("\"launch\":\"17.0.2\""));
  Say(client, "{\"type\":\"rea");
  EXPECT_EQ(heard_.size(), 1U);
  Say(client, "dy\"}\n{\"type\":\"leaving\",\"reason\":\"x\"}\n");
  ASSERT_EQ(heard_.size(), 3U);
  EXPECT_EQ(std::get<contract::Leaving>(heard_[2]).reason, "x");
}

TEST_F(WorkerSocketTest, WhoSaysHelloLaterIsToldTheNewestSize) {
  served_->Tell("{\"type\":\"resize\",\"generation\":1,\"members\":[]}\n");
  served_->Tell("{\"type\":\"resize\",\"generation\":2,\"members\":[]}\n");
  served_->Tell("{\"type\":\"checkpoint\",\"deadline_ms\":1}\n");
  const auto client = Connect();
  Say(client, kHello);
  const auto heard = Hear(client);
  EXPECT_THAT(heard, HasSubstr("\"type\":\"welcome\""));
  EXPECT_THAT(heard, HasSubstr("\"generation\":2,"));
  EXPECT_THAT(heard, Not(HasSubstr("\"generation\":1,")));
  EXPECT_THAT(heard, Not(HasSubstr("checkpoint\"")));
}

TEST_F(WorkerSocketTest, RefusesWhatItDoesNotUnderstandAndGoesOn) {
  const auto client = Connect();
  Say(client, "{\"type\":\"ready\"}\n");
  EXPECT_THAT(Hear(client), HasSubstr("say hello first"));
  Say(client, "{\"type\":\"hello\",\"version\":2}\n");
  EXPECT_THAT(Hear(client), HasSubstr("knows up to 1"));
  EXPECT_FALSE(served_->speaks());
  Say(client, kHello);
  Hear(client);
  Say(client, "nonsense\n");
  EXPECT_THAT(Hear(client), HasSubstr("not a JSON object"));
  EXPECT_TRUE(served_->speaks());
  EXPECT_EQ(heard_.size(), 1U);
}

TEST_F(WorkerSocketTest, TellsThoseWhoSaidHello) {
  const auto first = Connect();
  const auto second = Connect();
  Say(first, kHello);
  Hear(first);
  served_->Tell("{}\n");
  EXPECT_EQ(Hear(first), "{}\n");
  EXPECT_EQ(Hear(second), "");
}

TEST_F(WorkerSocketTest, ALineWithoutEndIsCutOff) {
  const auto client = Connect();
  Say(client, kHello);
  Hear(client);
  Say(client, std::string(contract::kLongestLine + 1, 'x'));
  EXPECT_THAT(Hear(client), HasSubstr("too long"));
  EXPECT_EQ(Hear(client), "closed");
}

TEST_F(WorkerSocketTest, WhoNeverReadsIsCutOffAndNotKeptForEver) {
  const auto client = Connect();
  Say(client, kHello);
  const std::string line(60'000, ' ');
  for (int i = 0; i < 100; ++i) served_->Tell(line);
  served_->Serve();
  EXPECT_FALSE(served_->speaks());
}

TEST_F(WorkerSocketTest, LastWordsOfAProcessThatIsGoneAreHeard) {
  auto client = Connect();
  Say(client, kHello);
  const std::string last = "{\"type\":\"checkpointed\",\"step\":7,\"path\":\"p\"}\n";
  ASSERT_GT(send(client.get(), last.data(), last.size(), MSG_NOSIGNAL), 0);
  client.Close();
  served_->Tell("{}\n");
  served_->Serve();
  ASSERT_EQ(heard_.size(), 2U);
  EXPECT_EQ(std::get<contract::Checkpointed>(heard_[1]).step, 7);
  EXPECT_FALSE(served_->speaks());
}

}  // namespace
}  // namespace muster::shim
