# Sidekiq as the tests drive it: ruby sidekiq.rb work DIR | enqueue ORDER... | dead
require "sidekiq"
require "sidekiq/api"

class ChargeJob
  include Sidekiq::Worker
  sidekiq_options queue: "orders", retry: 1
  sidekiq_retry_in { 1 }

  def perform(order)
    File.write(File.join(ENV["SHOP"], "ran"), order + "\n", mode: "a")
    raise "card declined: order #{order}" if File.exist?(File.join(ENV["SHOP"], "broken"))
  end
end

case ARGV[0]
when "work"
  exec({"SHOP" => ARGV[1]}, "/usr/bin/sidekiq", "-r", File.expand_path(__FILE__), "-c", "1", "-q", "orders")
when "enqueue"
  ARGV.drop(1).each { |order| ChargeJob.perform_async(order) }
when "dead"
  puts Sidekiq::DeadSet.new.size
else # Sidekiq itself has required this file
  Sidekiq.options[:average_scheduled_poll_interval] = 1
end
