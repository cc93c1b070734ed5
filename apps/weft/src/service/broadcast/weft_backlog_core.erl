%% SPDX-License-Identifier: Apache-2.0
%% @doc How much of what this node sends to a process may wait in its mailbox, in messages and
%% bytes.
%%
%% Pure. What was sent and may still wait is counted, which is an upper bound. Only when it reaches
%% a limit the length of the mailbox is asked for; the oldest messages are taken first, so they are
%% subtracted. If more than three quarters of a limit still wait, the process is behind: it gets
%% nothing until less than half is left. So the mailbox is not examined for every message, and the
%% state does not flap. Messages of other senders make a process look more behind than it is.
-module(weft_backlog_core).

-export([new/1, offer/2, looked/3, is_behind/1, catches_up/2]).
-export_type([backlog/0, limits/0]).

-type limits() :: {Messages :: pos_integer(), Bytes :: pos_integer()}.

-record(backlog, {limits :: limits(),
                  %% The size of each message that may wait, the oldest first.
                  sizes = queue:new() :: queue:queue(non_neg_integer()),
                  messages = 0 :: non_neg_integer(),
                  bytes = 0 :: non_neg_integer(),
                  is_behind = false :: boolean()}).
-opaque backlog() :: #backlog{}.

%% @doc Nothing was sent yet. A message may have at most a quarter of the bytes.
-spec new(limits()) -> backlog().
new(Limits) ->
    #backlog{limits = Limits}.

%% @doc May a message of that size be sent? `look': ask `looked/3', with the length of the mailbox.
-spec offer(Bytes :: non_neg_integer(), backlog()) -> {send | behind, backlog()} | look.
offer(_Bytes, #backlog{is_behind = true} = Backlog) ->
    {behind, Backlog};
offer(Bytes, #backlog{limits = {MaxMessages, MaxBytes}} = Backlog) ->
    Sent = #backlog{messages = Messages, bytes = Waiting} = add(Bytes, Backlog),
    case Messages =< MaxMessages andalso Waiting =< MaxBytes of
        true -> {send, Sent};
        false -> look
    end.

%% @doc The same, now that the length of the mailbox is known.
-spec looked(MailboxLength :: non_neg_integer(), Bytes :: non_neg_integer(), backlog()) ->
          {send | behind, backlog()}.
looked(MailboxLength, Bytes, Backlog0) ->
    Backlog = trim(MailboxLength, Backlog0),
    case is_within(3, 4, Backlog) of
        true -> {send, add(Bytes, Backlog)};
        false -> {behind, Backlog#backlog{is_behind = true}}
    end.

%% @doc Is it behind, so that it gets nothing at present?
-spec is_behind(backlog()) -> boolean().
is_behind(#backlog{is_behind = IsBehind}) ->
    IsBehind.

%% @doc The length of the mailbox of a process that is behind: has it caught up?
-spec catches_up(MailboxLength :: non_neg_integer(), backlog()) -> {boolean(), backlog()}.
catches_up(MailboxLength, Backlog0) ->
    Backlog = trim(MailboxLength, Backlog0),
    CatchesUp = is_within(1, 2, Backlog),
    {CatchesUp, Backlog#backlog{is_behind = not CatchesUp}}.

add(Bytes, #backlog{sizes = Sizes, messages = Messages, bytes = Waiting} = Backlog) ->
    Backlog#backlog{sizes = queue:in(Bytes, Sizes), messages = Messages + 1,
                    bytes = Waiting + Bytes}.

trim(MailboxLength, #backlog{messages = Messages} = Backlog) when Messages =< MailboxLength ->
    Backlog;
trim(MailboxLength, #backlog{sizes = Sizes0, messages = Messages, bytes = Waiting} = Backlog) ->
    {{value, Bytes}, Sizes} = queue:out(Sizes0),
    trim(MailboxLength, Backlog#backlog{sizes = Sizes, messages = Messages - 1,
                                        bytes = Waiting - Bytes}).

is_within(Part, Of, #backlog{messages = Messages, bytes = Bytes,
                             limits = {MaxMessages, MaxBytes}}) ->
    Messages * Of =< MaxMessages * Part andalso Bytes * Of =< MaxBytes * Part.
