#include <future>
#include <thread>
#include <vector>

#include "net/net_testing.h"

namespace muster::net {
namespace {

// Hands the exchange of the next request to the test.
class Caught {
 public:
  Handler Take() {
    return [this](Request, std::shared_ptr<Exchange> exchange) {
      exchange_.set_value(std::move(exchange));
    };
  }
  std::shared_ptr<Exchange> Get() { return exchange_.get_future().get(); }

 private:
  std::promise<std::shared_ptr<Exchange>> exchange_;
};

TEST(Stream, ArrivesAsItIsWrittenAndTheConnectionIsKept) {
  const SocketFolder folder;
  int requests = 0;
  const auto server = StartServer(At(folder.Path()), [&](Request, auto exchange) {
    ++requests;
    exchange->BeginStream(200, "application/x-ndjson", {{"Cache-Control", "no-store"}});
    for (const char* line : {"one\n", "two\n", "three\n"}) EXPECT_TRUE(exchange->Write(line));
    exchange->Finish();
    EXPECT_FALSE(exchange->Write("behind the end"));
  });
  HttpClient client({.unix_path = folder.Path()});
  for (int round = 0; round < 2; ++round) {
    std::string all;
    const auto response = client.Stream({}, kPatienceMs, [&all](std::string_view chunk) {
      all += chunk;
      return true;
    });
    ASSERT_TRUE(response.has_value()) << Describe(response.error());
    EXPECT_EQ(response->content_type, "application/x-ndjson");
    EXPECT_EQ(*response->Find("cache-control"), "no-store");
    EXPECT_EQ(all, "one\ntwo\nthree\n");
  }
  EXPECT_EQ(requests, 2);
}

TEST(Stream, ReaderMayAnswerToEachChunkBeforeTheNextIsWritten) {
  const SocketFolder folder;
  Caught caught;
  const auto server = StartServer(At(folder.Path()), caught.Take());
  HttpClient client({.unix_path = folder.Path()});
  std::vector<std::promise<void>> seen(3);
  std::thread writer([&] {
    const auto exchange = caught.Get();
    exchange->BeginStream(200, "text/plain");
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(exchange->Write(std::to_string(i)));
      seen[static_cast<std::size_t>(i)].get_future().wait();
    }
    exchange->Finish();
  });
  std::size_t chunks = 0;
  const auto response = client.Stream({}, kPatienceMs, [&](std::string_view chunk) {
    EXPECT_EQ(chunk, std::to_string(chunks));
    seen[chunks++].set_value();
    return true;
  });
  writer.join();
  EXPECT_TRUE(response.has_value());
  EXPECT_EQ(chunks, 3U);
}

TEST(Stream, WriterLearnsThatTheReaderDoesNotReadAndMayGoOnWhenItDoes) {
  const SocketFolder folder;
  Caught caught;
  const auto server = StartServer(At(folder.Path()), caught.Take());
  auto client = RawUnix(folder.Path());
  client.Send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  const auto exchange = caught.Get();
  exchange->BeginStream(200, "text/plain");
  const std::string block(64 << 10, 'x');
  std::size_t blocks = 0;
  while (exchange->Write(block)) ++blocks;
  EXPECT_FALSE(exchange->gone());
  EXPECT_GT(exchange->Queued() + block.size(), kMostQueuedBytes);
  EXPECT_LE(exchange->Queued(), kMostQueuedBytes + 4096);
  std::thread writer([&] {
    while (exchange->Queued() > 0) std::this_thread::yield();
    EXPECT_TRUE(exchange->Write("end"));
    exchange->Finish();
  });
  const auto all = client.ReadAll();
  writer.join();
  EXPECT_TRUE(all.ends_with("3\r\nend\r\n0\r\n\r\n"));
  EXPECT_GT(all.size(), blocks * block.size());
}

TEST(Stream, WriterLearnsThatTheReaderHasGone) {
  const SocketFolder folder;
  Caught caught;
  const auto server = StartServer(At(folder.Path()), caught.Take());
  HttpClient client({.unix_path = folder.Path()});
  std::thread writer([&] {
    const auto exchange = caught.Get();
    exchange->BeginStream(200, "text/plain");
    while (exchange->Write("tick\n")) std::this_thread::yield();
    while (!exchange->gone()) std::this_thread::yield();
  });
  const auto response = client.Stream({}, kPatienceMs, [](std::string_view) { return false; });
  writer.join();
  EXPECT_TRUE(response.has_value());
}

TEST(Stream, ReaderThatStopsReadingIsCutAfterAWhile) {
  const SocketFolder folder;
  Caught caught;
  auto options = At(folder.Path());
  options.idle_timeout_ms = 40;
  const auto server = StartServer(options, caught.Take());
  auto client = RawUnix(folder.Path());
  client.Send("GET / HTTP/1.1\r\n\r\n");
  const auto exchange = caught.Get();
  exchange->BeginStream(200, "text/plain");
  while (exchange->Write(std::string(1 << 20, 'x'))) {
  }
  while (!exchange->gone()) std::this_thread::yield();
  EXPECT_FALSE(exchange->Write("x"));
}

TEST(Stream, ReaderOfADroppedStreamKnowsThatTheEndIsMissing) {
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), [](Request, auto exchange) {
    exchange->BeginStream(200, "text/plain");
    exchange->Write("half");
  });
  std::string all;
  const auto response = HttpClient({.unix_path = folder.Path()})
                            .Stream({}, kPatienceMs, [&all](std::string_view chunk) {
                              all += chunk;
                              return true;
                            });
  EXPECT_EQ(all, "half");
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(response.error().message.find("middle"), std::string::npos);
}

TEST(Stream, RefusalIsAResponseNotAChunk) {
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), [](Request, auto exchange) {
    exchange->Reply({.status = 404, .body = "no such job"});
  });
  const auto response =
      HttpClient({.unix_path = folder.Path()}).Stream({}, kPatienceMs, [](std::string_view) {
        ADD_FAILURE();
        return true;
      });
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 404);
  EXPECT_EQ(response->body, "no such job");
}

TEST(Stream, PausesLongerThanTheTimeoutAreAnError) {
  const SocketFolder folder;
  Caught caught;
  const auto server = StartServer(At(folder.Path()), caught.Take());
  std::shared_ptr<Exchange> exchange;
  std::thread writer([&] {
    exchange = caught.Get();
    exchange->BeginStream(200, "text/plain");
    exchange->Write("only");
  });
  const auto response =
      HttpClient({.unix_path = folder.Path()}).Stream({}, 50, [](std::string_view) {
        return true;
      });
  writer.join();
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code, ErrorCode::kTimeout);
}

}  // namespace
}  // namespace muster::net
