%% SPDX-License-Identifier: Apache-2.0
%% What every conformance case uses: receive with a deadline and a clear failure text.

%% No receive waits longer than this; generous, since gateways and slow machines run the same cases.
-define(DEADLINE_MS, 30_000).

%% Waits for a message matching Pattern and evaluates to Result.
%% Variables bound outside are matched, as in any receive.
-define(expect(Pattern, Result),
    (fun() ->
        receive
            Pattern -> Result
        after ?DEADLINE_MS -> weft_expect:missed(??Pattern, ?MODULE, ?LINE, ?DEADLINE_MS)
        end
    end)()).
-define(expect(Pattern), ?expect(Pattern, ok)).

%% Fails if a message matching Pattern is in the mailbox now. Says something only after a
%% round trip with the process that would have sent it (signals of a pair keep their order).
-define(refute(Pattern),
    (fun() ->
        receive
            Pattern -> weft_expect:unwanted(??Pattern, ?MODULE, ?LINE)
        after 0 -> ok
        end
    end)()).

%% Evaluates Expr, which must raise Class with a reason matching Reason.
-define(raises(Class, Reason, Expr),
    (fun() ->
        try Expr of
            Returned -> weft_expect:not_raised(??Expr, Returned, ?MODULE, ?LINE)
        catch
            Class:Reason -> ok
        end
    end)()).
